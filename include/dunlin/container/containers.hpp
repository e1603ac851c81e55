#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <dunlin/container/cost.hpp>
#include <dunlin/container/limits.hpp>
#include <dunlin/container/promise.hpp>
#include <dunlin/remote.hpp>

/// A Containers holds the objects that the containers of one process share: progress, the channel
/// of their messages, and the cost model. One thread uses it, the one that polls its fabric.
///
///     dunlin::Containers containers(*fabric);
///     dunlin::HashMap<int, double> prices(containers, {.name = "prices", .slots = 1000});
namespace dunlin {

struct ContainersOptions {
  std::uint32_t channel = kContainerChannel;  // must differ if a fabric has several Containers
  ComponentCosts costs = {};                  // the fabric's costs; 0: not measured, see cost.hpp
};

namespace container {
struct Hub;
class Checker;
struct Check;
struct CheckDeleter {
  void operator()(Check* check) const noexcept;
};
}  // namespace container

class Containers {
 public:
  /// The containers stop when any member fails. Does not wait for the other members. Throws Error.
  explicit Containers(Fabric& fabric, ContainersOptions options = {});
  /// The containers go on as the membership of `progress` does. The progress must outlive this
  /// object, which outlives its containers.
  explicit Containers(remote::Progress& progress, ContainersOptions options = {});
  ~Containers();
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  std::size_t poll() { return progress().poll(); }
  [[nodiscard]] Waits waits() const { return progress().waits(); }
  [[nodiscard]] remote::Progress& progress() const noexcept;
  [[nodiscard]] Fabric& fabric() const noexcept { return progress().fabric(); }
  [[nodiscard]] const ComponentCosts& costs() const noexcept;
  void set_costs(const ComponentCosts& costs) noexcept;
  /// A sentence about the last two calls on a `checked` container that contradicted each other;
  /// empty: there were none.
  [[nodiscard]] const std::string& broken_promise() const noexcept;
  /// A sentence that names the last member whose part of a container has other options than ours,
  /// and what differs; empty: there is none. Calls on that part end with `refused`.
  [[nodiscard]] const std::string& why_refused() const noexcept;

  // --- for containers ----------------------------------------------------------------------------
  [[nodiscard]] container::Hub& hub() const noexcept { return *hub_; }

 private:
  std::unique_ptr<container::Hub> hub_;
};

/// A call on a container, under way: poll until finished(), wait(), co_await it, or attach a
/// callback. It stays where it is made, and its container outlives it.
class ContainerOperation : public remote::InFlight {
 public:
  ~ContainerOperation() override = default;

 protected:
  explicit ContainerOperation(container::Hub& hub) noexcept;

  /// Ends the call; the call of a checked container ends once it is retracted.
  void finish(remote::Status status) noexcept {
    if (check_ != nullptr) return finish_checked(status);
    end(status);
  }
  // A checked container begins its check here; src/container/check.hpp says how.
  void begin_check(Rank home, std::uint32_t call, Promise promise) noexcept;
  [[nodiscard]] bool passes_check() noexcept;
  void give_up_check() noexcept;
  /// Whether nothing of the check has been posted yet.
  [[nodiscard]] bool check_not_begun() const noexcept;

  /// Begins a backoff before a failed call is tried again: attempts at every poll would keep
  /// others, and the group that agrees on a death, from the queue to the home. Each backoff is
  /// twice as long as the last one, up to `longest_ns`; or longer, if the attempt took long.
  void begin_rest(std::uint64_t longest_ns) noexcept;
  [[nodiscard]] bool rests() noexcept;
  void forget_rests() noexcept { rest_ns_ = resume_at_ns_ = resumed_at_ns_ = 0; }

  /// Called with the answer of another member.
  virtual void replied(remote::Status status, bool flag,
                       std::span<const std::byte> content) noexcept = 0;

  container::Hub& hub_;
  std::uint64_t call_ = 0;           // names the request while it is not answered
  std::size_t posted_ = 0;           // operations posted from a batch that was taken in part
  std::uint64_t rest_ns_ = 0;        // the last backoff
  std::uint64_t resume_at_ns_ = 0;   // 0: no backoff is under way
  std::uint64_t resumed_at_ns_ = 0;  // when the last backoff ended; 0: there was none
  bool answered_ = false;
  remote::Status answer_ = remote::Status::ok;
  std::unique_ptr<container::Check, container::CheckDeleter> check_;  // if promises are checked

 private:
  void finish_checked(remote::Status status) noexcept;
  void count_announcement() noexcept;
  void settle_check() noexcept;

  friend struct container::Hub;
};

}  // namespace dunlin
