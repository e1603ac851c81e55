#include <thread>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>

#include "fabric/conformance/growing.hpp"
#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {
namespace {

class RealGrowingBackend final : public GrowingBackend {
 public:
  using Begin =
      std::function<std::unique_ptr<PendingJoin>(const std::string&, Rank, std::uint32_t)>;
  using Place = std::function<std::shared_ptr<Rendezvous>(const std::string&, Rank)>;

  RealGrowingBackend(std::uint32_t founders, std::uint32_t nodes, const Begin& begin, Place place)
      : nodes_(nodes), place_(std::move(place)), founders_(founders) {
    std::vector<std::unique_ptr<PendingJoin>> joins;
    for (Rank rank = 0; rank < founders; ++rank) joins.push_back(begin(group_, rank, founders));
    const auto formed = [&] {
      bool all = true;
      for (Rank rank = 0; rank < founders; ++rank) {
        if (!founders_[rank]) founders_[rank] = joins[rank]->poll();
        all = all && founders_[rank];
      }
      return all;
    };
    while (!formed()) std::this_thread::yield();
  }
  Fabric& founder(Rank node) override { return *founders_.at(node); }
  std::shared_ptr<Rendezvous> rendezvous(Rank node) override { return place_(group_, node); }
  void attach(std::function<std::size_t(Rank)> poll) override { poll_ = std::move(poll); }
  bool run_until(const std::function<bool()>& condition) override {
    const std::uint64_t started = steady_now_ns();
    while (!condition()) {
      if (patience_ends(started)) return false;
      for (Rank node = 0; node < nodes_; ++node) poll_(node);
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::string group_ = fresh_group_name();
  std::uint32_t nodes_;
  Place place_;
  std::vector<std::unique_ptr<Fabric>> founders_;
  std::function<std::size_t(Rank)> poll_;
};

class SimGrowingBackend final : public GrowingBackend {
 public:
  SimGrowingBackend(const sim::Profile& profile, std::uint32_t founders, std::uint32_t nodes)
      : world_(profile, founders, 1), nodes_(nodes) {
    while (world_.size() < nodes) world_.add_node();
  }
  Fabric& founder(Rank node) override { return world_.fabric(node); }
  std::shared_ptr<Rendezvous> rendezvous(Rank node) override {
    return world_.rendezvous(node, "sim");
  }
  void attach(std::function<std::size_t(Rank)> poll) override {
    for (Rank node = 0; node < nodes_; ++node)
      world_.attach(node, [poll, node] { return poll(node); });
  }
  bool run_until(const std::function<bool()>& condition) override {
    return world_.run_until(condition, 10'000'000'000);
  }

 private:
  sim::World world_;
  std::uint32_t nodes_;
};

Grower simulated(const std::string& variant, const sim::Profile& profile) {
  return {variant, [profile](std::uint32_t founders, std::uint32_t nodes) {
            return std::make_unique<SimGrowingBackend>(profile, founders, nodes);
          }};
}

std::unique_ptr<GrowingBackend> on_shm(std::uint32_t founders, std::uint32_t nodes) {
  return real_growing_backend(
      founders, nodes,
      [](const std::string& group, Rank rank, std::uint32_t members) {
        return begin_join(
            {.group = group, .members = members, .rank = rank, .silence_timeout_ms = 0});
      },
      [](const std::string& group, Rank) {
        return make_rendezvous({.group = group, .silence_timeout_ms = 0});
      });
}

/// Made before the first is added, whichever file comes first.
std::vector<Grower>& added_growers() {
  static std::vector<Grower> all;
  return all;
}

}  // namespace

bool add_grower(Grower grower) {
  added_growers().push_back(std::move(grower));
  return true;
}

std::unique_ptr<GrowingBackend> real_growing_backend(
    std::uint32_t founders, std::uint32_t nodes,
    const std::function<std::unique_ptr<PendingJoin>(const std::string& group, Rank rank,
                                                     std::uint32_t nodes)>& begin,
    std::function<std::shared_ptr<Rendezvous>(const std::string& group, Rank node)> rendezvous) {
  return std::make_unique<RealGrowingBackend>(founders, nodes, begin, std::move(rendezvous));
}

std::vector<Grower> growers() {
  sim::Profile wild = sim::profile("ib100");
  wild.jitter = 0.9;
  wild.ordered_placement = false;
  std::vector<Grower> all{
      {"Shm", on_shm}, simulated("Sim", sim::profile("ib100")), simulated("SimWild", wild)};
  all.insert(all.end(), added_growers().begin(), added_growers().end());
  return all;
}

}  // namespace dunlin::conformance
