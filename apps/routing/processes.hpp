#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

/// Child processes that never outlive their parent.
namespace dunlin::routing {

class Processes {
 public:
  Processes();
  ~Processes();  // kills what is still running
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Fork a process that runs `work` and ends; it is killed when this process dies. What it throws
  /// is kept for complain().
  void start(const std::function<void()>& work);
  /// Throws what the first failing child has thrown, BadInput or Error; returns if none has.
  void complain();
  /// The same, but throws also if a child was killed and, for a while, no other says what became of
  /// it.
  void demand_health();
  /// All have ended, as far as demand_health() has seen.
  [[nodiscard]] bool all_ended() const noexcept { return running_.empty(); }
  /// Sleeps until a child has ended or complained, one of these descriptors can be read, it is time
  /// for demand_health() to look again, or it is too late (-1: never).
  void await_news(const std::vector<int>& others, int timeout_ms = -1);
  /// Wait until all have ended by themselves, but not longer than that.
  void finish(std::uint32_t timeout_ms) noexcept;

 private:
  /// Takes those out of running_ that have ended. What is wrong with one that did not end well.
  [[nodiscard]] std::string reap() noexcept;
  [[noreturn]] void run_child(pid_t parent, const std::function<void()>& work) noexcept;

  int read_end_ = -1;
  int write_end_ = -1;
  int ended_ = -1;  // readable when a child may have
  std::vector<pid_t> running_;
  std::string fault_;  // how one was killed
  std::uint64_t fault_ms_ = 0;
};

}  // namespace dunlin::routing
