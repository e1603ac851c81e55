#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "process/children.hpp"
#include "process/pipe.hpp"

/// The processes of this host in a run, and the error of the first that failed.
namespace dunlin::routing {

class Processes {
 public:
  Processes();

  /// Forks a process that runs `work` and ends. An exception of `work` is kept for complain().
  void start(const std::function<void()>& work);
  /// Throws what the first failing child has thrown, BadInput or Error; returns if none has.
  void complain();
  /// Complains, and also throws if a child was killed and, for a while, no other says why.
  void demand_health();
  /// Whether all have ended, as far as demand_health() has seen.
  [[nodiscard]] bool all_ended() const noexcept { return children_.running() == 0; }
  /// Sleeps until a child has ended or complained, one of these descriptors can be read, it is time
  /// for demand_health() to look again, or it is too late (-1: never).
  void await_news(const std::vector<int>& others, int timeout_ms = -1);
  /// Wait until all have ended by themselves, but not longer than that.
  void finish(std::uint32_t timeout_ms);

 private:
  void reap();

  process::Pipe complaints_;
  process::Children children_;
  std::string fault_;  // how one was killed
  std::uint64_t fault_ms_ = 0;
};

}  // namespace dunlin::routing
