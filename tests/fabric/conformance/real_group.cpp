#include "fabric/conformance/real_group.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace dunlin::conformance {

std::uint64_t steady_now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

bool patience_ends(std::uint64_t since_ns) {
  constexpr std::uint64_t kPatienceNs = 60'000'000'000;
  return steady_now_ns() - since_ns > kPatienceNs;
}

std::string fresh_group_name() {
  static std::atomic<unsigned> next{0};
  return "conformance-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

namespace {

/// Runs work(rank) on a thread a node; rethrows the first exception when all have ended.
class Crew {
 public:
  template <class Work>
  void run(std::uint32_t nodes, const Work& work) {
    {
      std::vector<std::jthread> threads;
      for (Rank r = 0; r < nodes; ++r) threads.emplace_back([&, r] { guarded(work, r); });
    }
    if (error_) std::rethrow_exception(error_);
  }
  [[nodiscard]] bool troubled() const { return troubled_.load(); }
  void give_up() { troubled_ = true; }

 private:
  template <class Work>
  void guarded(const Work& work, Rank rank) {
    try {
      work(rank);
    } catch (...) {
      troubled_ = true;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> troubled_{false};
};

class RealGroup final : public Group {
 public:
  RealGroup(const Backend& backend, std::uint32_t nodes) : fabrics_(nodes) {
    const std::string name = fresh_group_name();
    Crew().run(nodes, [&](Rank r) { fabrics_[r] = backend.join(name, r, nodes); });
    record_events();
  }
  ~RealGroup() override { release_all(); }

  std::uint32_t size() const override { return static_cast<std::uint32_t>(fabrics_.size()); }
  Fabric& node(Rank rank) override { return *fabrics_.at(rank); }
  bool alive(Rank rank) const override { return fabrics_.at(rank) != nullptr; }

  void poll_all() override {
    for (auto& fabric : fabrics_) {
      if (fabric) fabric->poll();
    }
  }

  bool run_until(const std::function<bool()>& condition) override {
    const std::uint64_t started = steady_now_ns();
    while (!condition()) {
      if (patience_ends(started)) return false;
      poll_all();
      std::this_thread::yield();
    }
    return true;
  }

  bool run(const std::vector<Program>& programs) override {
    Crew crew;
    std::atomic<std::uint32_t> busy{size()};
    crew.run(size(), [&](Rank r) { play(r, programs[r], crew, busy); });
    return !crew.troubled();
  }

  void kill(Rank rank) override {
    bury(rank);
    fabrics_.at(rank).reset();
  }

 private:
  /// A node whose program is done keeps polling: the others may need it.
  void play(Rank rank, const Program& program, Crew& crew, std::atomic<std::uint32_t>& busy) {
    const std::uint64_t started = steady_now_ns();
    bool done = false;
    while (busy != 0 && !crew.troubled()) {
      if (fabrics_[rank]) fabrics_[rank]->poll();
      if (!done && (!program || !fabrics_[rank] || program())) {
        done = true;
        --busy;
      }
      if (patience_ends(started)) crew.give_up();
      std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

}  // namespace

std::unique_ptr<Group> start_real_group(const Backend& backend, std::uint32_t nodes) {
  return std::make_unique<RealGroup>(backend, nodes);
}

}  // namespace dunlin::conformance
