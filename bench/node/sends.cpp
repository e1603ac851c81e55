#include <array>
#include <atomic>
#include <thread>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "bench/node/experiments.hpp"
#include "bench/node/front.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kBytes = 100;
// So many that the time in which a sleeping thread wakes does not count.
constexpr std::uint32_t kMessages = 1'000'000;
constexpr std::uint32_t kMessagesByLock = 100'000;
constexpr std::uint32_t kLooksPerYield = 1'000;
constexpr double kGoalOfSends = 0.7;  // of the rate of a thread that polls by itself
constexpr std::array kMessage = std::array<std::byte, kBytes>{};

/// A multicast that this thread polls.
class Core {
 public:
  Core(Member& me, const Group& group)
      : fabric_(group.join(me.rank())),
        group_(*fabric_, {.subgroups = {{.name = "all"}}}),
        multicast_(group_, "all") {
    multicast_.on_delivery(
        [this](std::span<const multicast::Delivery> batch) { delivered_ += batch.size(); });
    me.meet([this] { poll(); });
    while (me.rank() == 0 && group_.view().number == 0) poll();
  }
  std::size_t poll() { return group_.poll(); }
  void send() {
    while (multicast_.send(kMessage) != multicast::SendResult::sent) poll();
    ++sent_;
  }
  void poll_until_delivered() {
    while (delivered_ < sent_) poll();
  }
  [[nodiscard]] double rate(std::uint32_t messages) {
    const double start = now_ns();
    for (std::uint32_t i = 0; i < messages; ++i) send();
    poll_until_delivered();
    return messages * 1e9 / (now_ns() - start);
  }
  void once() {
    send();
    poll_until_delivered();
  }

 private:
  std::unique_ptr<Fabric> fabric_;
  dunlin::Group group_;
  Multicast multicast_;
  std::uint64_t sent_ = 0;
  std::uint64_t delivered_ = 0;
};

/// A multicast of a node.
class Front {
 public:
  Front(Member& me, const std::string& group, std::uint32_t members)
      : engine_(start_engine(group, members)), object_(engine_->with_lock([this] {
          return engine_->object<node::MulticastObject>("multicast 'all'", [this] {
            MulticastSetup setup;
            setup.on_delivery = [this](const NodeMessage& message) {
              if (message.is_own) delivered_.fetch_add(1, std::memory_order_release);
            };
            return std::make_shared<node::MulticastObject>(*engine_, "all", std::move(setup));
          });
        })) {
    object_->wait_until_joined(10'000'000'000);
    me.meet([] { std::this_thread::yield(); });
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;
  ~Front() { engine_->finish(); }

  [[nodiscard]] double rate(std::uint32_t threads, std::uint32_t messages, bool waits_for_turn) {
    const double start = now_ns();
    {
      std::vector<std::jthread> senders;
      for (std::uint32_t i = 0; i < threads; ++i)
        senders.emplace_back([&] {
          for (std::uint32_t sent = 0; sent < messages / threads; ++sent)
            waits_for_turn ? send_with_lock() : send();
        });
    }
    sent_ += messages / threads * threads;
    wait_until_delivered();
    return messages / threads * threads * 1e9 / (now_ns() - start);
  }
  void once() {
    send();
    ++sent_;
    wait_until_delivered();
  }

 private:
  void send() {
    while (object_->send(kMessage) != multicast::SendResult::sent) std::this_thread::yield();
  }
  /// What a lock around the multicast would be: the polling thread has it while it posts.
  void send_with_lock() {
    const auto try_send = [this] {
      return engine_->with_lock([this] { return object_->core().send(kMessage); });
    };
    while (try_send() != multicast::SendResult::sent) std::this_thread::yield();
    engine_->wake_if_asleep();
  }
  void wait_until_delivered() const {
    for (std::uint32_t look = 1; delivered_.load(std::memory_order_acquire) < sent_; ++look) {
      relax();
      if (look % kLooksPerYield == 0) std::this_thread::yield();
    }
  }

  std::shared_ptr<node::Engine> engine_;
  alignas(128) std::atomic<std::uint64_t> delivered_{0};
  alignas(128) std::uint64_t sent_ = 0;
  std::shared_ptr<node::MulticastObject> object_;
};

template <class Measure>
Contender core_turn(Member& me, Core& core, Measure measure) {
  return [&me, &core, measure]() -> std::optional<double> {
    return take_turn(
        me, [&] { core.poll(); },
        [&]() -> std::optional<double> {
          if (me.rank() != 0) return std::nullopt;
          return measure();
        });
  };
}

std::vector<Result> measure_sends(const Effort& effort, std::uint32_t members) {
  const Group group(real_network("shm"), effort, members);
  const std::string front_group = fresh_group();
  const std::uint32_t messages = effort.scaled(kMessages);
  const std::uint32_t messages_by_lock = effort.scaled(kMessagesByLock);
  constexpr std::array<std::uint32_t, 3> kThreads{1, 2, 4};
  Team team(unpinned(group, members));
  team.run([&](Member& me) {
    Core core(me, group);
    Front front(me, front_group, members);
    std::vector<Contender> contenders{core_turn(me, core, [&] { return core.rate(messages); })};
    for (const bool waits : {false, true})
      for (const std::uint32_t threads : kThreads)
        contenders.emplace_back([&, threads, waits] {
          return node_turn(
              me, [&] { return front.rate(threads, waits ? messages_by_lock : messages, waits); });
        });
    alternate(me, effort.rounds, contenders);
  });
  std::vector<Result> results;
  std::uint32_t series = 0;
  for (const bool waits : {false, true})
    for (const std::uint32_t threads : kThreads) {
      Result result{.params = {{"members", double(members)},
                               {"threads", double(threads)},
                               {"way", waits ? "waits for the lock" : "handle"}},
                    .unit = "1/s"};
      if (!waits) result.goal = Goal{.bound = kGoalOfSends};
      results.push_back(compared(std::move(result), team.series(++series),
                                 "a thread that polls itself", team.series(0)));
    }
  return results;
}

std::vector<Result> measure_delivery(const Effort& effort, std::uint32_t members) {
  const Group group(real_network("shm"), effort, members);
  const std::string front_group = fresh_group();
  const Batches plan = effort.plan(100, 20);
  Team team(unpinned(group, members));
  team.run([&](Member& me) {
    Core core(me, group);
    Front front(me, front_group, members);
    alternate(me, effort.rounds,
              {core_turn(me, core, [&] { return batch_ns(plan, [&] { core.once(); }); }), [&] {
                 return node_turn(me, [&] { return batch_ns(plan, [&] { front.once(); }); });
               }});
  });
  return {compared({.params = {{"members", double(members)}}, .unit = "ns"}, team.series(1),
                   "a thread that polls itself", team.series(0))};
}

}  // namespace

std::vector<Experiment> node_sends() {
  return experiments_on(
      "shm", {{"sends", "messages of 100 B a second that threads of a member send together", "",
               for_settings({1U, 2U}, measure_sends)},
              {"delivery", "a message of 100 B until the sender's callback has it", "",
               for_settings({1U, 2U}, measure_delivery)}});
}

}  // namespace dunlin::bench
