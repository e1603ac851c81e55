#include "fabric/sim/sim_rendezvous.hpp"

#include <algorithm>
#include <utility>

#include "fabric/bytes.hpp"
#include "fabric/sim/entering.hpp"
#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {
namespace {

constexpr Ticks kConnectPatience = 2'000'000 * kTicksPerNs;

std::shared_ptr<Caller> enter(std::deque<std::shared_ptr<Caller>>& side, Rank node) {
  std::erase_if(side, [](const auto& caller) { return caller->gone; });
  return side.emplace_back(std::make_shared<Caller>(Caller{.node = node}));
}

}  // namespace

std::shared_ptr<Caller> Listeners::open(const std::string& group, Rank node) {
  return enter(listeners_[group].openers, node);
}

std::shared_ptr<Caller> Listeners::connect(const std::string& group, Rank node) {
  return enter(listeners_[group].connectors, node);
}

void Listeners::match(const std::string& group) {
  Listener& listener = listeners_[group];
  const auto waits = [](const auto& caller) { return !caller->gone && caller->fabric.empty(); };
  for (const auto& opener : listener.openers) {
    if (!waits(opener) || !world_.cpu(opener->node).computes()) continue;
    const auto connector = std::ranges::find_if(listener.connectors, [&](const auto& caller) {
      return waits(caller) && caller->node != opener->node && world_.cpu(caller->node).computes() &&
             world_.network.can_meet(opener->node, caller->node);
    });
    if (connector == listener.connectors.end()) continue;
    for (Caller* const caller : {opener.get(), connector->get()}) {
      caller->fabric = group + ".join." + std::to_string(listener.opened);
      caller->members = {opener->node, (*connector)->node};
      world_.cpu(caller->node).wake(world_.timeline.now);
    }
    ++listener.opened;
  }
}

namespace {

/// One side of a listener. The opener's side waits on if its caller is lost.
class SimConnection final : public PendingJoin {
 public:
  SimConnection(Simulation& world, std::string group, Rank node, bool opens)
      : world_(world), group_(std::move(group)), node_(node), opens_(opens) {
    arrive();
  }
  ~SimConnection() override { caller_->gone = true; }

  std::unique_ptr<Fabric> poll() override {
    if (!pair_ && caller_->fabric.empty()) world_.listeners.match(group_);
    if (!pair_ && caller_->fabric.empty()) return wait();
    try {
      if (!pair_) {
        caller_->gone = true;
        pair_ = std::make_unique<SimPendingJoin>(
            world_, world_.pending_fabrics.enter(node_, caller_->fabric, caller_->members), node_,
            kConnectPatience);
      }
      return pair_->poll();
    } catch (const Error&) {
      if (!opens_) throw;
      pair_.reset();
      arrive();
      return nullptr;
    }
  }

 private:
  void arrive() {
    caller_ =
        opens_ ? world_.listeners.open(group_, node_) : world_.listeners.connect(group_, node_);
    deadline_ = saturating_add(world_.cpu(node_).clock(), kConnectPatience);
    world_.listeners.match(group_);
    if (!opens_) world_.cpu(node_).wake_by(deadline_);
  }
  std::unique_ptr<Fabric> wait() {
    if (opens_) return nullptr;
    if (world_.cpu(node_).clock() >= deadline_)
      throw Error("group '" + group_ + "': no member has accepted node" + std::to_string(node_) +
                  " within " + std::to_string(to_ns(kConnectPatience) / 1000) + " us");
    world_.cpu(node_).wake_by(deadline_);
    return nullptr;
  }

  Simulation& world_;
  std::string group_;
  Rank node_;
  bool opens_;
  std::shared_ptr<Caller> caller_;
  Ticks deadline_ = 0;
  std::unique_ptr<SimPendingJoin> pair_;
};

class SimRendezvous final : public Rendezvous {
 public:
  SimRendezvous(Simulation& world, Rank node, std::string group)
      : world_(world), node_(node), group_(std::move(group)) {}

  const std::string& group() const noexcept override { return group_; }
  std::unique_ptr<PendingJoin> accept() override {
    return std::make_unique<SimConnection>(world_, group_, node_, true);
  }
  std::unique_ptr<PendingJoin> connect() override {
    return std::make_unique<SimConnection>(world_, group_, node_, false);
  }
  std::unique_ptr<PendingEntry> enter() override {
    return std::make_unique<SimEntry>(world_, node_);
  }
  std::array<std::byte, kAdmissionKeyBytes> new_key() override {
    std::vector<std::byte> bytes;
    Writer writer(bytes);
    writer.u32(node_);
    writer.u64(++keys_);
    std::array<std::byte, kAdmissionKeyBytes> key{};
    std::ranges::copy(bytes, key.begin());
    return key;
  }
  std::uint64_t now_ns() const override { return to_ns(world_.cpu(node_).clock()); }
  void wake_at(std::uint64_t time_ns) override { world_.cpu(node_).wake_by(ticks_of_ns(time_ns)); }

 private:
  Simulation& world_;
  Rank node_;
  std::string group_;
  std::uint64_t keys_ = 0;
};

}  // namespace

std::shared_ptr<Rendezvous> make_rendezvous(Simulation& world, Rank node,
                                            const std::string& group) {
  return std::make_shared<SimRendezvous>(world, node, group);
}

}  // namespace dunlin::sim
