#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "multicast/input.hpp"
#include "multicast/running_digest.hpp"
#include "signals.hpp"

namespace dunlin::app::cast {

/// The name of the group's subgroup.
inline constexpr const char* kSubgroup = "messages";

/// How many messages a member sends, how large, and when it stops.
struct Course {
  bool lines = false;       // sends those of standard input, until there are no more; or:
  std::size_t bytes = 100;  // length of each message
  std::size_t ring_bytes = MulticastOptions{}.ring_bytes;  // for each sender, at each member
  double rate = 1'000;                         // messages a second; 0: as many as there is room for
  std::optional<std::uint64_t> count = {};     // messages to send in all
  std::optional<std::uint64_t> until = {};     // leaves when so many have been delivered
  std::optional<double> seconds = {};          // leaves after so long
  std::uint64_t digest_every = 10'000;         // messages
  double interval_s = 1;                       // between reports; 0: none
  std::string log = {};                        // durable: the directory of this member's log
  std::vector<std::string> log_given_up = {};  // members whose logs are lost
  std::uint64_t log_trim_bytes = 0;            // the log is trimmed each time; 0: never
  bool log_quorum = false;                     // begins again with a quorum of the last members
  bool tells_ways = false;  // prints how each member is reached, whenever that is new
};

/// Sends, delivers, and prints what all members must agree on.
class Member {
 public:
  /// Attaches itself to the group, which must not have been polled.
  Member(Group& group, const std::string& name, const Course& course);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Runs until this member has left, as its course says or because a signal has come. Throws Error
  /// if the group had to stop.
  void run(SignalGuard& signals);

 private:
  bool work();
  [[nodiscard]] std::uint32_t look_in_ms() const noexcept;
  bool send_some(std::uint64_t now_ns);
  bool send_one(std::uint64_t now_ns);
  bool send_line();
  void take(std::span<const multicast::Delivery> batch);
  void load(std::span<const std::byte> state);
  void replay(const multicast::Logged& logged);
  void print_replayed();
  [[nodiscard]] std::vector<std::byte> save() const;
  void report(std::uint64_t now_ns);
  void leave(SignalGuard& signals);
  template <class Condition>
  bool await(SignalGuard& signals, std::uint32_t timeout_ms, Condition condition);
  void print(const std::string& text) const;
  void print_ways();
  [[nodiscard]] std::string digest() const;
  [[nodiscard]] double seconds_since_start(std::uint64_t now_ns) const noexcept;

  Group& group_;
  std::string name_;
  Course course_;
  Multicast multicast_;
  Input input_;
  RunningDigest so_far_;
  std::vector<std::byte> message_;
  std::uint64_t replayed_ = 0;  // from the log, and not printed yet
  std::uint64_t sent_ = 0;
  std::uint64_t under_way_ = 0;  // sent, and not delivered here
  std::uint64_t start_ns_ = 0;   // when the first view began
  std::uint64_t reported_ns_ = 0;
  std::uint64_t reported_messages_ = 0;
  std::uint64_t reported_no_room_ = 0;
  std::string told_ways_;
  std::vector<std::uint64_t> latencies_ns_;  // for own messages, since the last report
};

}  // namespace dunlin::app::cast
