#include <dunlin/fabric/sim.hpp>

#include "fabric/conformance/harness.hpp"

namespace dunlin::conformance {

namespace {

class SimGroup final : public Group {
 public:
  SimGroup(const sim::Profile& profile, std::uint32_t nodes) : world_(profile, nodes, 1) {
    for (Rank r = 0; r < nodes; ++r) attach(r, nullptr);
    record_events();
  }
  ~SimGroup() override { release_all(); }

  std::uint32_t size() const override { return world_.size(); }
  Fabric& node(Rank rank) override { return world_.fabric(rank); }
  bool alive(Rank rank) const override { return !dead_.at(rank); }
  void poll_all() override { world_.run_for(1'000); }

  bool run_until(const std::function<bool()>& condition) override {
    constexpr std::uint64_t kPatienceNs = 1'000'000'000;
    return world_.run_until(condition, kPatienceNs);
  }

  bool run(const std::vector<Program>& programs) override {
    std::vector<bool> done(size());
    std::uint32_t busy = 0;
    for (Rank r = 0; r < size(); ++r) {
      if (dead_[r]) continue;
      ++busy;
      world_.detach_all(r);
      attach(r, [&, r] {
        if (done[r] || (programs[r] && !programs[r]())) return !done[r];
        done[r] = true;
        --busy;
        return true;
      });
    }
    const bool all = run_until([&] { return busy == 0; });
    for (Rank r = 0; r < size(); ++r) {
      if (dead_[r]) continue;
      world_.detach_all(r);
      attach(r, nullptr);
    }
    return all;
  }

  void kill(Rank rank) override {
    dead_.at(rank) = true;
    world_.crash(rank);
  }

 private:
  /// `more` says whether it wants to be called again even if nothing arrives.
  void attach(Rank rank, std::function<bool()> more) {
    world_.attach(rank, [this, rank, more = std::move(more)] {
      const std::size_t handled = node(rank).poll();
      return handled + (more && more() ? 1 : 0);
    });
  }

  sim::World world_;
  std::vector<bool> dead_ = std::vector<bool>(world_.size());
};

Backend simulated(const std::string& variant, const sim::Profile& profile) {
  return {.variant = variant, .start = [profile](std::uint32_t nodes) {
            return std::make_unique<SimGroup>(profile, nodes);
          }};
}

}  // namespace

std::vector<Backend> sim_backends() {
  const sim::Profile& usual = sim::profile("ib100");
  // A network that shuffles what it may, and one with hardly any room for operations.
  sim::Profile wild = usual;
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  wild.native_atomics = false;
  sim::Profile narrow = usual;
  narrow.queue_slots = 2;
  narrow.max_inline_bytes = 0;
  return {simulated("ideal", sim::profile("ideal")), simulated("usual", usual),
          simulated("wild", wild), simulated("narrow", narrow)};
}

DUNLIN_CONFORMANCE(Sim, sim_backends);

}  // namespace dunlin::conformance
