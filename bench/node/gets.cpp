#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include <dunlin/store.hpp>

#include "bench/node/experiments.hpp"
#include "bench/node/front.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint64_t kKeys = 64;
constexpr double kMostOfHandOver = 1.2;  // of a bare one
constexpr double kMostMoreNs = 60;       // of a get that is done at once
const StoreOptions kStore{.memory_bytes = 4 << 20, .large_bytes = 0};

/// A thread that answers a word by another one: what a call that is handed over costs at least.
class BareHandOver {
 public:
  BareHandOver()
      : thread_([this](const std::stop_token& stop) {
          std::uint64_t seen = 0;
          while (!stop.stop_requested()) {
            const std::uint64_t asked = asked_.load(std::memory_order_acquire);
            if (asked == seen) relax();
            answered_.store(seen = asked, std::memory_order_release);
          }
        }) {}
  void once() {
    asked_.store(++number_, std::memory_order_release);
    while (answered_.load(std::memory_order_acquire) < number_) relax();
  }

 private:
  alignas(128) std::atomic<std::uint64_t> asked_{0};
  alignas(128) std::atomic<std::uint64_t> answered_{0};
  std::uint64_t number_ = 0;
  std::jthread thread_;
};

/// Hands an empty call over through the queue of a node.
class NodeHandOver {
 public:
  explicit NodeHandOver(node::Engine& engine) : engine_(engine) {}
  void once() {
    const std::uint64_t number = ++number_;
    const auto claim = engine_.enqueue(
        [this, number]() noexcept { answered_.store(number, std::memory_order_release); });
    if (claim != node::RecordRing::Claim::ok) throw Error("bench: a node's queue took no call");
    while (answered_.load(std::memory_order_acquire) < number) relax();
  }

 private:
  node::Engine& engine_;
  alignas(128) std::atomic<std::uint64_t> answered_{0};
  std::uint64_t number_ = 0;
};

std::vector<Result> measure_hand_over(const Effort& effort) {
  const Batches plan = effort.plan(100, 50);
  Team team({.processes = 1, .pin = false, .timeout = effort.timeout});
  const std::string group = fresh_group();
  team.run([&](Member& me) {
    const std::shared_ptr<node::Engine> engine = start_engine(group, 1);
    NodeHandOver handed(*engine);
    alternate(me, effort.rounds,
              {[&] {
                 BareHandOver bare;
                 return std::optional(batch_ns(plan, [&] { bare.once(); }));
               },
               [&] { return std::optional(batch_ns(plan, [&] { handed.once(); })); }});
    engine->finish();
  });
  return {compared(
      {.params = {{"call", "empty"}}, .unit = "ns", .goal = Goal{.bound = kMostOfHandOver}},
      team.series(1), "a bare hand-over", team.series(0))};
}

/// Keys with values of 8 bytes, of which a member has its share.
class CoreStore {
 public:
  CoreStore(Member& me, const Group& group)
      : fabric_(group.join(me.rank())), store_(*fabric_, kStore) {
    me.meet([this] { poll(); });
    for (std::uint64_t key = 0; me.rank() == 0 && key < kKeys; ++key)
      if (!store_.put(key, bytes_of(key)).outcome().ok()) throw Error("bench: a put has failed");
  }
  void poll() { store_.poll(); }
  void once() {
    store_.get(operation_, ++next_ % kKeys);
    if (operation_.wait() != remote::Status::ok) throw Error("bench: a get has failed");
    std::memcpy(&value_, operation_.text().data(), sizeof value_);
  }

 private:
  std::unique_ptr<Fabric> fabric_;
  Store store_;
  StoreOperation operation_;
  std::uint64_t next_ = 0;
  std::uint64_t value_ = 0;
};

class FrontStore {
 public:
  FrontStore(Member& me, const std::string& group, std::uint32_t members)
      : engine_(start_engine(group, members)), store_(engine_, "store", kStore) {
    for (std::uint64_t key = 0; me.rank() == 0 && key < kKeys; ++key)
      store_.put(key, bytes_of(key)).get();
  }
  ~FrontStore() { engine_->finish(); }
  FrontStore(const FrontStore&) = delete;
  FrontStore& operator=(const FrontStore&) = delete;
  void once() {
    if (!store_.get_into(++next_ % kKeys, bytes_of(value_)).get())
      throw Error("bench: a key has gone");
  }

 private:
  std::shared_ptr<node::Engine> engine_;
  StoreHandle store_;
  std::uint64_t next_ = 0;
  std::uint64_t value_ = 0;
};

std::vector<Result> measure_gets(const Effort& effort, std::uint32_t members) {
  const Group group(real_network("shm"), effort, members);
  const std::string front_group = fresh_group();
  const Batches plan = effort.plan(100, 100);
  Team team(unpinned(group, members));
  team.run([&](Member& me) {
    CoreStore core(me, group);
    FrontStore front(me, front_group, members);
    alternate(
        me, effort.rounds,
        {[&] {
           return take_turn(
               me, [&] { core.poll(); },
               [&]() -> std::optional<double> {
                 if (me.rank() != 0) return std::nullopt;
                 return batch_ns(plan, [&] { core.once(); });
               });
         },
         [&] { return node_turn(me, [&] { return batch_ns(plan, [&] { front.once(); }); }); }});
  });
  const auto params = [&](const char* what) {
    return Params{{"members", double(members)}, {"what", what}};
  };
  Result more{.params = params("more than the limit"),
              .unit = "ns",
              .goal = Goal{.on = Goal::On::value, .bound = kMostMoreNs}};
  std::vector<double> differences;
  for (std::size_t i = 0; i < team.series(1).size(); ++i)
    differences.push_back(team.series(1)[i] - team.series(0)[i]);
  if (!differences.empty()) more.value = summarize(differences);
  return {compared({.params = params("a get"), .unit = "ns"}, team.series(1),
                   "a thread that polls itself", team.series(0)),
          std::move(more)};
}

}  // namespace

std::vector<Experiment> node_gets() {
  return experiments_on("shm",
                        {{"gets", "a get of 8 bytes by a thread that does not poll", "",
                          for_settings({1U, 2U}, measure_gets)},
                         {"hand over", "a call through the node's queue until it has been done", "",
                          measure_hand_over}});
}

}  // namespace dunlin::bench
