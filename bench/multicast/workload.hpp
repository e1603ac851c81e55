#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "bench/harness/experiment.hpp"
#include "bench/harness/turns.hpp"
#include "bench/multicast/cast.hpp"

/// Members of a group that send into its subgroups as an application might: with windows, delays,
/// upcalls that take their time, copies, and logs.
namespace dunlin::bench {

struct Load {
  std::uint32_t senders = 2;  // the first so many
  std::size_t bytes = 10'000;
  std::size_t ring_bytes = kRingBytes;
  std::uint32_t window = 0;  // messages; 0: as many as fit

  std::uint32_t subgroups = 1;  // all with all members and senders,
  std::uint32_t active = 1;     // of which so many are used, in turn

  std::uint32_t delayed = 0;    // of the senders, the last so many
  std::uint64_t delay_ns = 0;   // after each message; kSilent: they send none
  std::uint64_t upcall_ns = 0;  // the upcall of a batch takes
  bool copies = false;          // at both ends

  multicast::Switches switches = {};
  std::string log_directory = {};  // durable; of this member, with its parent
  bool timed = false;              // posting, and some messages until they are delivered here

  static constexpr std::uint64_t kSilent = UINT64_MAX;

  [[nodiscard]] std::uint32_t undelayed() const noexcept { return senders - delayed; }
};

class Workload {
 public:
  /// Returns when all members of the team are in the first view.
  Workload(Member& me, std::unique_ptr<Fabric> fabric, Load load);

  /// Each sender that is not delayed sends so many. Member 0 gets how many a second it delivers, of
  /// all senders. Without a policy it polls, and yields when that has been in vain for long.
  [[nodiscard]] std::optional<double> round(std::uint64_t messages,
                                            std::optional<Wait> wait = std::nullopt);
  /// Member 0 sends one at a time in an otherwise idle group; it gets ns until it delivers it.
  [[nodiscard]] std::optional<double> one_by_one(const Batches& plan);

  std::size_t poll() { return group_.poll(); }
  [[nodiscard]] multicast::Counters counters() const;
  /// What the stages handled at once here, what was posted for it, and where it was timed, how long
  /// that and deliveries took.
  [[nodiscard]] std::string told() const;

 private:
  struct Part {
    std::unique_ptr<Multicast> cast;
    std::uint64_t sent = 0;       // by us
    std::uint64_t delivered = 0;  // of those
    std::deque<double> sent_ns = {};
  };

  [[nodiscard]] GroupOptions options() const;
  void take(Part& part, std::span<const multicast::Delivery> batch);
  void copy_out(std::span<const std::byte> message);
  /// Sends what there is room for.
  std::size_t send();
  bool send_one();
  [[nodiscard]] bool over() const noexcept { return undelayed_ >= goal_; }

  Member& me_;
  const Load load_;
  std::unique_ptr<Fabric> fabric_;
  dunlin::Group group_;
  std::vector<Part> parts_;
  bool delayed_ = false;
  std::vector<std::byte> own_;  // what is copied from, and to

  std::uint64_t left_ = 0;       // to send in this round
  std::uint64_t goal_ = 0;       // messages of senders that are not delayed, over all rounds
  std::uint64_t undelayed_ = 0;  // delivered of them
  std::uint64_t delivered_ = 0;  // of all
  std::size_t next_ = 0;         // part to send into
  double next_ns_ = 0;           // when a delayed sender may send
  double timed_ns_ = 0;          // how long all rounds took
  std::vector<double> latencies_;
};

/// Once more, with the clock: what member 0 has to tell is the team's note.
void note_timed(Member& me, std::unique_ptr<Fabric> fabric, Load load, std::uint64_t messages);

}  // namespace dunlin::bench
