#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <dunlin/store.hpp>

#include "store/stores.hpp"
#include "support/fresh_group.hpp"
#include "support/group_member.hpp"
#include "support/process.hpp"
#include "support/seeds.hpp"

/// Real processes that share a store with two copies of each key, and that kill -9 removes one by
/// one, amid their puts. `DUNLIN_SEEDS="1 170"` makes 510 kills.
namespace dunlin {
namespace {

using remote::Status;
using test::kPatienceMs;
using test::NodeBackend;
using test::Parent;
using test::Process;

constexpr std::uint32_t kHomes = 5;
constexpr std::uint32_t kKills = 3;  // what is left is more than half of the view before
constexpr std::size_t kKeys = 24;    // of each member
constexpr std::uint64_t kMostPuts = 300;
constexpr std::uint64_t kPatienceNs = std::uint64_t{kPatienceMs} * 1'000'000;

/// What all processes see: of each key the number of the put that was begun last, and of the one
/// that ended last.
struct Shared {
  struct Known {
    std::atomic<std::uint64_t> begun{0}, ended{0};
  };
  std::array<std::array<Known, kKeys>, kHomes> keys;
  std::array<std::atomic<std::uint32_t>, kHomes> checked{};  // after so many deaths
  std::array<std::atomic<Rank>, kKills> dead{};
  std::atomic<std::uint32_t> kills{0}, deaths{0};  // begun, and over
  std::atomic<std::uint64_t> puts{0};              // that have ended
  std::atomic<Rank> leaver{kHomes};                // the home that is to leave
  std::atomic<bool> leave_has_ended{false}, has_left{false};
  std::atomic<bool> is_over{false};  // one has given up
};

class SharedPages {
 public:
  SharedPages()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages() { munmap(shared_, sizeof(Shared)); }
  Shared& operator*() const { return *shared_; }

 private:
  Shared* shared_;
};

std::string name_of(Rank rank, std::size_t key) {
  return std::to_string(rank) + "/" + std::to_string(key);
}

/// Of one process.
class Writer {
 public:
  Writer(const NodeBackend& backend, const test::NodeSpec& node, Shared& shared)
      : shared_(shared), rank_(node.rank), fabric_(backend.join(node)) {}

  /// Until it is killed; else what went wrong.
  std::string work() {
    for (std::uint64_t number = 1;; ++number) {
      if (shared_.is_over) return "goes on";
      const std::size_t key = number % kKeys;
      Shared::Known& known = shared_.keys.at(rank_).at(key);
      known.begun = number;
      auto put = store_.put(name_of(rank_, key), std::to_string(number));
      if (put.wait(kPatienceNs) != Status::ok)
        return "a put: " + std::string(remote::describe(put.status()));
      known.ended = number;
      ++shared_.puts;
      if (std::string wrong = leave(); !wrong.empty()) return wrong;
      const std::uint32_t deaths = shared_.deaths;
      if (deaths == shared_.checked.at(rank_)) continue;
      if (!await(shared_.dead.at(deaths - 1))) return "STO-C4: copies are not restored";
      if (std::string wrong = check(); !wrong.empty()) return wrong;
      shared_.checked.at(rank_) = deaths;
    }
  }

  [[nodiscard]] std::string state() const { return store_.describe_moves(); }

 private:
  /// Begins when it is to, and goes on beside the puts. It ends with `lost` if the home dies that
  /// gets the keys.
  std::string leave() {
    if (shared_.leaver != rank_ || shared_.leave_has_ended) return {};
    if (!leave_) {
      leave_ = std::make_unique<StoreOperation>();
      store_.leave(*leave_);
    }
    if (!leave_->finished()) return {};
    const Status status = leave_->status();
    if (status != Status::ok && (status != Status::lost || shared_.kills == 0))
      return "a leave: " + std::string(remote::describe(status));
    if (status == Status::ok && store_.statistics().keys > 0) return "it has left, and has keys";
    shared_.has_left = status == Status::ok;
    shared_.leave_has_ended = true;
    return {};
  }
  bool await(Rank dead) {
    const std::uint64_t end = fabric_->now_ns() + kPatienceNs;
    while (member_.progress.contains(dead) || !store_.statistics().copies_complete) {
      if (store_.poll() == 0) std::this_thread::yield();
      if (fabric_->now_ns() > end) return false;
    }
    return true;
  }
  /// All keys of all members, dead ones included.
  std::string check() {
    for (Rank rank = 0; rank < kHomes; ++rank)
      for (std::size_t key = 0; key < kKeys; ++key) {
        const Shared::Known& known = shared_.keys.at(rank).at(key);
        const std::uint64_t least = known.ended;
        auto get = store_.get(name_of(rank, key));
        if (get.wait(kPatienceNs) != Status::ok)
          return "a get: " + std::string(remote::describe(get.status()));
        const std::uint64_t found = get.found() ? std::stoull(std::string(get.text())) : 0;
        if (found < least || found > known.begun)
          return "STO-C1: key " + name_of(rank, key) + " has value " + std::to_string(found) +
                 ", and put " + std::to_string(least) + " had ended";
      }
    return {};
  }
  static StoreOptions options() {
    StoreOptions options = test::small_store();
    options.copies = 2;
    return options;
  }

  Shared& shared_;
  Rank rank_;
  std::unique_ptr<Fabric> fabric_;
  test::GroupMember member_{*fabric_};
  Store store_{member_.progress, options()};
  std::unique_ptr<StoreOperation> leave_;
};

struct StoreKills : test::OnBackends {};

/// The processes of a store. The parent.
class Killing {
 public:
  explicit Killing(const NodeBackend& backend) {
    const std::string name = test::fresh_group();
    for (Rank rank = 0; rank < kHomes; ++rank) {
      left_.push_back(rank);
      processes_.push_back(std::make_unique<Process>([&, rank](Parent& parent) {
        Writer writer(backend, {.group = name, .nodes = kHomes, .rank = rank}, shared());
        parent.send_line("works");
        const std::string end = writer.work();
        parent.send_line(end + "; " + writer.state());
        return 1;
      }));
    }
    for (const auto& process : processes_) EXPECT_EQ(process->receive_line(), "works");
  }
  [[nodiscard]] Shared& shared() const { return *pages_; }
  void wait_for_puts(std::uint64_t many) {
    const std::uint64_t until = shared().puts + many;
    wait_until([&] { return shared().puts >= until; });
  }
  /// If the home that is to leave is left.
  void wait_for_the_leave() {
    if (std::ranges::find(left_, shared().leaver.load()) == left_.end()) return;
    wait_until([&] { return shared().leave_has_ended.load(); });
  }
  /// A member that works ends only if it is killed. So `ready` comes, or a member that ends.
  void wait_until(const std::function<bool()>& ready) {
    std::vector<pollfd> news;
    for (const Rank rank : left_) news.push_back({processes_[rank]->descriptor(), POLLIN, 0});
    while (!ready()) {
      if (poll(news.data(), news.size(), 1) <= 0) continue;
      for (std::size_t i = 0; i < news.size(); ++i)
        if (news[i].revents != 0) {
          shared().is_over = true;  // and all tell their states
          std::string text;
          for (const Rank rank : left_)
            text += "\nmember " + std::to_string(rank) + ": " + processes_[rank]->receive_line();
          FAIL() << text;
        }
    }
  }
  /// Any of them; then the others have looked at all keys.
  void kill_one(std::mt19937_64& random) {
    const auto dies = left_.begin() + static_cast<std::ptrdiff_t>(random() % left_.size());
    ++shared().kills;
    processes_[*dies]->kill();
    shared().dead.at(shared().deaths) = *dies;
    left_.erase(dies);
    const std::uint32_t deaths = ++shared().deaths;
    wait_until([&] {
      return std::ranges::all_of(left_,
                                 [&](Rank rank) { return shared().checked.at(rank) == deaths; });
    });
  }

 private:
  SharedPages pages_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Rank> left_;
};

TEST_P(StoreKills, NothingIsLostThatWasPut) {
  std::uint64_t puts = 0, kills = 0;
  test::for_each_seed(test::Seeds(1), [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Killing killing(GetParam());
    for (std::uint32_t i = 0; i < kKills && !HasFailure(); ++i, ++kills) {
      killing.wait_for_puts(random() % kMostPuts);
      if (!HasFailure()) killing.kill_one(random);
    }
    puts += killing.shared().puts;
  });
  std::cout << kills << " kills amid " << puts << " puts\n";
}

/// The first kill amid the leave, or soon after it; that of the leaving home, too. The second one
/// leaves two homes at least.
TEST_P(StoreKills, NothingIsLostThatWasPutWhileAHomeLeaves) {
  std::uint64_t puts = 0, kills = 0, leaves = 0;
  test::for_each_seed(test::Seeds(3), [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Killing killing(GetParam());
    killing.wait_for_puts(random() % kMostPuts);
    killing.shared().leaver = static_cast<Rank>(random() % kHomes);
    for (std::uint32_t i = 0; i < kKills - 1 && !HasFailure(); ++i, ++kills) {
      if (i > 0) killing.wait_for_the_leave();
      killing.wait_for_puts(random() % (i == 0 ? kMostPuts / 10 : kMostPuts));
      if (!HasFailure()) killing.kill_one(random);
    }
    puts += killing.shared().puts;
    leaves += killing.shared().has_left ? 1 : 0;
  });
  std::cout << kills << " kills and " << leaves << " leaves amid " << puts << " puts\n";
}

DUNLIN_RUN_ON(test::backends(), StoreKills);

}  // namespace
}  // namespace dunlin
