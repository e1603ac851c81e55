#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <sched.h>

#include <dunlin/group.hpp>
#include <dunlin/node/multicast.hpp>

#include "fabric/system.hpp"

namespace dunlin {
namespace node {
namespace {

using multicast::SendResult;

constexpr std::size_t kLeastRing = 1 << 16;

}  // namespace

MulticastObject::MulticastObject(Engine& engine, const std::string& name, MulticastSetup setup,
                                 Upcall upcall)
    : engine_(engine),
      name_(name),
      sends_(setup.sends),
      upcall_(std::move(upcall)),
      ring_(std::max(kLeastRing, std::bit_ceil(setup.options.ring_bytes))) {
  if (setup.on_delivery)
    on_delivery_ = std::make_shared<const std::function<void(const NodeMessage&)>>(
        std::move(setup.on_delivery));
  setup.options.hand_over_ms = engine.hand_over_ms();
  multicast_ = Multicast::join(engine.group(), name, setup.options, {.sends = setup.sends});
  multicast_->on_delivery([this](std::span<const multicast::Delivery> batch) { deliver(batch); });
  // The one that comes asks another member if `save` throws; it leaves the subgroup if `load` does.
  Multicast::Save save;
  Multicast::Load load;
  if (setup.save)
    save = [&engine, its = std::move(setup.save)] { return engine.call_in_poll(its); };
  if (setup.load)
    load = [&engine, its = std::move(setup.load)](std::span<const std::byte> state) {
      engine.call_in_poll([&] { its(state); });
    };
  if (save || load) multicast_->on_state(std::move(save), std::move(load));
  multicast_->on_members([this](const Subgroup& subgroup) { note_members(subgroup); });
}

MulticastObject::~MulticastObject() = default;

SendResult MulticastObject::send(std::span<const std::byte> message) {
  if (!sends_) return SendResult::not_a_sender;
  SendResult result = SendResult::no_room;
  bool is_done = false;
  bool has_run = false;
  // A thread that polls takes messages from the ring while this one writes the next; only one that
  // sleeps is not waited for.
  if (engine_.is_asleep() || engine_.has_lock())
    has_run = engine_.run_now([&] {
      if (!ring_.empty()) return;  // NODE-2
      result = multicast_->send(message);
      is_done = result != SendResult::wedged && result != SendResult::waiting_for_state;
    });
  if (is_done) {
    engine_.wake_if_asleep();
    return result;
  }
  if (!has_run && !engine_.is_running()) return SendResult::ended;
  RecordRing::Claim why;
  std::byte* const record = ring_.claim(message.size(), why);
  if (record == nullptr) {
    if (why == RecordRing::Claim::closed) return SendResult::ended;
    if (why == RecordRing::Claim::full) return SendResult::no_room;
    // A long message: there is no second copy of it to wait somewhere.
    return engine_.with_lock([&] {
      if (!ring_.empty()) return SendResult::no_room;
      const SendResult direct = multicast_->send(message);
      const bool later = direct == SendResult::wedged || direct == SendResult::waiting_for_state;
      return later ? SendResult::no_room : direct;
    });
  }
  if (!message.empty()) std::memcpy(record, message.data(), message.size());
  ring_.publish(record, message.size());
  engine_.wake_if_asleep();
  return SendResult::sent;
}

std::size_t MulticastObject::poll() {
  joined_.store(multicast_->joined(), std::memory_order_release);
  return ring_.read([this](std::span<const std::byte> message) {
    const SendResult result = multicast_->send(message);
    if (result == SendResult::ended) {
      ring_.close();
      ++dropped_;
    }
    return result == SendResult::sent || result == SendResult::ended;
  });
}

void MulticastObject::end() noexcept {
  ring_.read([this](std::span<const std::byte>) {
    ++dropped_;
    return true;
  });
  if (dropped_ > 0)
    engine_.tell("multicast '" + name_ + "': " + std::to_string(dropped_) +
                 " messages that were accepted have not been sent: this member ended, or "
                 "hand_over_ms was over");
  multicast_.reset();
  on_delivery_.reset();
  upcall_ = nullptr;
}

void MulticastObject::deliver(std::span<const multicast::Delivery> batch) {
  if (upcall_) return upcall_(batch, *this);
  if (!on_delivery_) return;
  for (const multicast::Delivery& delivery : batch) {
    const NodeMessage message{name_of(delivery.sender), is_me(delivery.sender), delivery.message};
    if (!engine_.has_executor()) {
      engine_.call_back([&] { (*on_delivery_)(message); });
      continue;
    }
    engine_.execute([sender = std::string(message.sender), is_own = message.is_own,
                     bytes = std::vector<std::byte>(message.bytes.begin(), message.bytes.end()),
                     handler = on_delivery_] {
      (*handler)({sender, is_own, bytes});
    });
  }
}

void MulticastObject::note_members(const Subgroup& subgroup) {
  const View& view = engine_.group().view();
  names_.clear();
  me_ = UINT32_MAX;
  for (std::uint32_t i = 0; i < subgroup.members.size(); ++i) {
    const Rank rank = subgroup.members[i];
    const auto at = std::ranges::find(view.ranks, rank);
    names_.push_back(at == view.ranks.end()
                         ? std::to_string(rank)
                         : view.members[static_cast<std::size_t>(at - view.ranks.begin())]);
    if (rank == engine_.fabric().rank()) me_ = i;
  }
}

void MulticastObject::wait_until_joined(std::uint64_t timeout_ns) {
  engine_.require_may_wait();
  const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
  while (!joined()) {
    std::string why;
    engine_.with_lock([&] {
      if (multicast_->left()) why = multicast_->why_left();
    });
    if (!why.empty()) throw Error("node: multicast '" + name_ + "': " + why);
    if (read_clock_ns(CLOCK_MONOTONIC) - begun_ns >= timeout_ns)
      throw Error("node: multicast '" + name_ + "': this member is not in it yet");
    sched_yield();
  }
}

}  // namespace node

MulticastHandle::MulticastHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                                 MulticastSetup setup)
    : engine_(std::move(engine)) {
  object_ = engine_->with_lock([&] {
    return engine_->object<node::MulticastObject>("multicast '" + name + "'", [&] {
      return std::make_shared<node::MulticastObject>(*engine_, name, std::move(setup));
    });
  });
}

bool MulticastHandle::acknowledged() {
  return engine_->look_with_lock(
      [&] { return object_->handed_over() && object_->core().acknowledged(); });
}

multicast::Counters MulticastHandle::counters() {
  return engine_->look_with_lock([&] { return object_->core().counters(); });
}

}  // namespace dunlin
