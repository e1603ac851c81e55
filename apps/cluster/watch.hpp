#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cluster/agreement.hpp"
#include "cluster/cluster.hpp"
#include "fabric/system.hpp"
#include "process/child.hpp"

namespace dunlin::app {

/// The watch of a command on several hosts: a process on each host is a member of a Group, so that
/// the hosts agree on which of them are still there. This works also while the command's own
/// processes are joining, and would wait for one that will never come.
///
///     Watch watch(cluster, intent, 60'000);      // returns at once
///     watch.await_others();
///     watch.guard([&] { while (...) poll({watch.descriptor(), ...}), watch.demand_others(); });
class Watch {
 public:
  /// Forks. Of one host: nothing.
  Watch(const Cluster& cluster, const Intent& intent, std::uint32_t timeout_ms);
  /// Tells the others that this host has ended, if its part was not done.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Whether all hosts have come, and are about to do the same.
  [[nodiscard]] bool all_here() const noexcept { return all_here_; }
  /// Returns when that is so. Throws what demand_others() does.
  void await_others();
  /// Throws BadInput, on all hosts, if they are not about to do the same; Error if they did not
  /// come, or one has ended before it said so. A sentence that names the host and how it ended.
  void demand_others();
  /// Readable when one of these is to be asked; -1 if there is one host.
  [[nodiscard]] int descriptor() const noexcept { return line_.get(); }

  /// Does this host's part, and tells the others that it is done, or why it cannot be.
  void guard(const std::function<void()>& part);

 private:
  void give_up(const std::string& why) noexcept;
  [[nodiscard]] std::string hear();
  void end(char how, const std::string& text) noexcept;

  Descriptor line_;
  process::Child watcher_;
  bool all_here_ = false;
};

}  // namespace dunlin::app
