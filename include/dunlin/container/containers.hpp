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
  std::uint32_t channel = kContainerChannel;  // differ, if a fabric has several
  ComponentCosts costs = {};                  // of the fabric; 0: not measured, see cost.hpp
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
  /// Stops when any member fails. Does not wait for the other members. Throws Error.
  explicit Containers(Fabric& fabric, ContainersOptions options = {});
  /// Goes on as its membership does. The progress must outlive this; this outlives its containers.
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
  /// The last two calls that contradicted each other, on containers that are `checked`: a sentence,
  /// or nothing.
  [[nodiscard]] const std::string& broken_promise() const noexcept;
  /// The last member whose part of a container was made with other options, which all must give
  /// alike, and what differs: a sentence, or nothing. Calls on that part end with `refused`.
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

  /// Ends the call; of a checked container, once it is retracted.
  void finish(remote::Status status) noexcept {
    if (check_ != nullptr) return finish_checked(status);
    end(status);
  }
  // Of a checked container; src/container/check.hpp says how.
  void begin_check(Rank home, std::uint32_t call, Promise promise) noexcept;
  [[nodiscard]] bool passes_check() noexcept;
  void give_up_check() noexcept;
  /// Whether nothing of the check has been posted yet.
  [[nodiscard]] bool check_not_begun() const noexcept;

  /// Rests before a further attempt of a call that failed: attempts at every poll would keep
  /// others, and the group that agrees on a death, from the queue to the home. Each rest is twice
  /// as long as the one before, up to `longest_ns`; or longer, if the attempt took long.
  void begin_rest(std::uint64_t longest_ns) noexcept;
  [[nodiscard]] bool rests() noexcept;
  void forget_rests() noexcept { rest_ns_ = resume_at_ns_ = resumed_at_ns_ = 0; }

  /// The answer of another member.
  virtual void replied(remote::Status status, bool flag,
                       std::span<const std::byte> content) noexcept = 0;

  container::Hub& hub_;
  std::uint64_t call_ = 0;           // of a request that is not answered yet
  std::size_t posted_ = 0;           // operations of a batch that was not taken as a whole
  std::uint64_t rest_ns_ = 0;        // the last one
  std::uint64_t resume_at_ns_ = 0;   // 0: it does not rest
  std::uint64_t resumed_at_ns_ = 0;  // after the last rest; 0: there was none
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
