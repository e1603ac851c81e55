#include "bench/multicast/cast.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench/multicast/patience.hpp"

namespace dunlin::bench {

using multicast::Delivery;
using multicast::Mode;
using multicast::SubgroupView;
using multicast::SubgroupViewOptions;

template <class Condition>
void Cast::poll_until(Condition&& condition) {
  for (Patience patience; !condition();) patience.after(poll() > 0);
}

Cast::Cast(Member& me, std::unique_ptr<Fabric> fabric, std::uint32_t senders)
    : me_(me), fabric_(std::move(fabric)) {
  subscription_ = fabric_->subscribe([this](const Event& event) {
    if (event.kind == Event::Kind::peer_failed) me_.lost(event.peer, event.text);
  });
  SubgroupViewOptions options;
  options.name = "ordered";
  options.generation = 1;
  options.ring_bytes = kRingBytes;
  options.members.resize(me.size());
  std::iota(options.members.begin(), options.members.end(), 0);
  options.senders.resize(senders);
  std::iota(options.senders.begin(), options.senders.end(), 0);
  for (Subgroup& subgroup : subgroups_) {
    subgroup.view = std::make_unique<SubgroupView>(
        *fabric_, options,
        [this, &subgroup](std::span<const Delivery> batch) { take(subgroup, batch); });
    options.name = "unordered";
    options.mode = Mode::unordered;
  }
  poll_until([&] { return ordered().view->connected() && unordered().view->connected(); });
  me.meet([&] { poll(); });
}

void Cast::store_last(std::uint32_t messages) {
  stores_ = messages > 0;
  if (stores_) stored_.resize(messages);  // what is there is used again
}

void Cast::take(Subgroup& subgroup, std::span<const Delivery> batch) {
  for (const Delivery& delivery : batch) {
    if (delivery.sender != me_.rank()) look_at(delivery.message);
    if (!stores_) continue;
    stored_[next_stored_++ % stored_.size()].assign(delivery.message.begin(),
                                                    delivery.message.end());
  }
  subgroup.delivered += batch.size();
}

std::size_t Cast::poll() { return subgroups_[0].view->poll() + subgroups_[1].view->poll(); }

std::optional<double> Cast::stream(Subgroup& subgroup, std::size_t bytes, std::uint64_t messages,
                                   std::uint32_t senders) {
  subgroup.goal += messages * senders;
  return take_turn(
      me_, [&] { poll(); },
      [&]() -> std::optional<double> {
        SubgroupView& view = *subgroup.view;
        std::uint64_t left = me_.rank() < senders ? messages : 0;
        const double start = now_ns();
        Patience patience;
        while (left > 0 || subgroup.delivered < subgroup.goal) {
          bool some = false;
          for (; left > 0 && view.prepare(bytes).data() != nullptr; --left) {
            view.commit();
            some = true;
          }
          some |= view.poll() > 0;
          patience.after(some);
        }
        const double seconds = (now_ns() - start) / 1e9;
        if (me_.rank() != 0) return std::nullopt;
        return static_cast<double>(messages * senders) / seconds;
      });
}

void Cast::send(SubgroupView& view, std::size_t bytes) {
  poll_until([&] { return view.prepare(bytes).data() != nullptr; });
  view.commit();
}

std::optional<double> Cast::one_by_one(Subgroup& subgroup, std::uint32_t sender, std::size_t bytes,
                                       const Batches& plan) {
  const std::uint64_t before = subgroup.goal;
  subgroup.goal += plan.total();
  return take_turn(
      me_, [&] { poll(); },
      [&]() -> std::optional<double> {
        SubgroupView& view = *subgroup.view;
        Patience patience;
        if (me_.rank() != sender) {
          while (subgroup.delivered < subgroup.goal) patience.after(view.poll() > 0);
          return std::nullopt;
        }
        std::uint64_t next = before;
        return batch_ns(plan, [&] {
          send(view, bytes);
          ++next;
          while (subgroup.delivered < next) patience.after(view.poll() > 0);
        });
      });
}

std::optional<double> Cast::ping_pong(Subgroup& subgroup, std::size_t bytes, const Batches& plan) {
  std::uint64_t next = subgroup.goal;
  subgroup.goal += 2 * plan.total();
  return take_turn(
      me_, [&] { poll(); },
      [&]() -> std::optional<double> {
        SubgroupView& view = *subgroup.view;
        Patience patience;
        const auto await = [&](std::uint64_t count) {
          while (subgroup.delivered < count) patience.after(view.poll() > 0);
        };
        if (me_.rank() == 0) {
          return batch_ns(plan,
                          [&] {
                            send(view, bytes);
                            await(next += 2);
                          }) /
                 2;
        }
        if (me_.rank() == 1) {
          for (; next < subgroup.goal; next += 2) {
            await(next + 1);
            send(view, bytes);
          }
        }
        await(subgroup.goal);
        return std::nullopt;
      });
}

}  // namespace dunlin::bench
