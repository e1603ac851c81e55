#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/daemon.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/group_member.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// A daemon in a thread of the test, and clients in other threads and processes.
namespace dunlin::test {

constexpr std::uint64_t kPatienceNs = std::uint64_t{kPatienceMs} * 1'000'000;

/// A member with a space, as `dunlin daemon` is.
struct DaemonMember {
  DaemonMember(const std::string& group_name, std::uint32_t count, Rank rank,
               const NodeBackend& backend = backends().front())
      : fabric(backend.join({.group = group_name, .nodes = count, .rank = rank})),
        space(member.progress, {.pool_bytes = std::size_t{1} << 22}) {}

  std::unique_ptr<Fabric> fabric;
  GroupMember member{*fabric};
  SegmentSpace space;
};

class Serving {
 public:
  /// Alone in its group, unless there are more `members`; it has rank 0.
  explicit Serving(std::string group, DaemonOptions options = {}, std::uint32_t members = 1,
                   const NodeBackend& backend = backends().front())
      : group_(std::move(group)) {
    options.group = group_;
    thread_ = std::thread([this, options, members, &backend] {
      DaemonMember member(group_, members, 0, backend);
      Daemon daemon(member.space, options);
      ready_ = true;
      Loop loop(*member.fabric, {.stop = stop_.get_token()});
      Watch watch{*this, daemon};
      loop.add(daemon).add(watch).run();
    });
    while (!ready_) std::this_thread::yield();
  }
  ~Serving() {
    stop_.request_stop();
    thread_.join();
  }
  [[nodiscard]] std::unique_ptr<SegmentSpace> attach() const {
    return dunlin::attach({.group = group_, .timeout_ms = kPatienceMs});
  }
  [[nodiscard]] std::uint32_t clients() const noexcept { return clients_; }
  [[nodiscard]] const std::string& group() const noexcept { return group_; }

 private:
  struct Watch {
    Serving& serving;
    Daemon& daemon;
    std::size_t poll() const {
      serving.clients_ = daemon.clients();
      return 0;
    }
  };
  std::string group_;
  std::stop_source stop_;
  std::atomic<bool> ready_{false};
  std::atomic<std::uint32_t> clients_{0};
  std::thread thread_;
};

inline Key make(SegmentSpace& space, const SegmentSpec& spec) {
  auto allocation = space.allocate(spec);
  EXPECT_TRUE(allocation.outcome(kPatienceNs).ok()) << allocation.describe();
  return allocation.result().key;
}
inline remote::Status put(SegmentSpace& space, Key key, std::uint64_t value) {
  return space.put(key, bytes_of(value)).outcome(kPatienceNs).status;
}
inline std::uint64_t get(SegmentSpace& space, Key key) {
  std::uint64_t value = UINT64_MAX;
  auto operation = space.get(key, bytes_of(value));
  EXPECT_TRUE(operation.outcome(kPatienceNs).ok()) << operation.describe();
  return value;
}

}  // namespace dunlin::test
