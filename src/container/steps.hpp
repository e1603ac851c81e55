#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dunlin/remote/protocol.hpp>

#include "container/check.hpp"
#include "container/hub.hpp"

/// What the protocols of containers await (docs/remote.md): operations on a member's part, answers
/// of members, and pauses; and the announcements of checked containers.
namespace dunlin::container {

/// Posts one operation on the part of the member that it names.
[[nodiscard]] inline remote::Batch<1, SiteGate> post(Site& site,
                                                     const Operation& operation) noexcept {
  return remote::post(site.fabric(), operation, site.gate(operation.peer));
}

/// Until when a call tries.
class Patience {
 public:
  Patience(Fabric& fabric, std::uint64_t until_ns) noexcept
      : fabric_(fabric), until_ns_(until_ns) {}
  /// Until then, the fabric polls no later.
  [[nodiscard]] bool is_over() const noexcept {
    if (until_ns_ == remote::kForever) return false;
    if (fabric_.now_ns() >= until_ns_) return true;
    fabric_.wake_at(until_ns_);
    return false;
  }
  [[nodiscard]] std::uint64_t until_ns() const noexcept { return until_ns_; }

 private:
  Fabric& fabric_;
  std::uint64_t until_ns_;
};

struct Reply {
  remote::Status status = remote::Status::ok;
  bool flag = false;
  std::size_t bytes = 0;  // of the content
};

/// Asks a member by message to do something on its part of the site's container, and awaits its
/// reply. What the reply contains comes to `into`, as far as it has room. Ends `timed_out` if the
/// request could not be sent until then.
class [[nodiscard]] Asked final : public remote::Waiter {
 public:
  Asked(Hub& hub, const Site& site, Rank to, const MessageHead& head,
        std::span<const std::byte> content, std::span<std::byte> into,
        std::uint64_t until_ns = remote::kForever) noexcept
      : hub_(hub),
        site_(site),
        to_(to),
        head_(head),
        content_(content),
        into_(into),
        patience_(hub.fabric, until_ns) {}
  ~Asked() { hub_.forget(*this); }

  [[nodiscard]] bool ready() noexcept override {
    if (answered_) return true;
    if (reply_.status = site_.fault(to_); reply_.status != remote::Status::ok) return true;
    if (is_under_way()) return false;
    if (patience_.is_over()) {
      reply_.status = remote::Status::timed_out;
      return true;
    }
    if (site_.connected(to_)) hub_.ask(*this);  // if there is no room, in the next poll
    return false;
  }
  [[nodiscard]] Reply result() const noexcept { return reply_; }

 private:
  friend struct Hub;
  [[nodiscard]] bool is_under_way() const noexcept { return call_ != 0; }
  void replied(remote::Status status, bool flag, std::span<const std::byte> content) noexcept;

  Hub& hub_;
  const Site& site_;
  Rank to_;
  MessageHead head_;
  std::span<const std::byte> content_;
  std::span<std::byte> into_;
  Patience patience_;
  std::uint64_t call_ = 0;  // names the request while it is not answered
  bool answered_ = false;
  Reply reply_;
};

/// Until the next poll, which is soon: a call looks again at what another one is changing.
class [[nodiscard]] Soon final : public remote::Waiter {
 public:
  explicit Soon(Hub& hub) noexcept : hub_(hub) {}
  [[nodiscard]] bool ready() noexcept override {
    if (std::exchange(asked_, true)) return true;
    hub_.look_again_soon();
    return false;
  }
  void result() const noexcept {}

 private:
  Hub& hub_;
  bool asked_ = false;
};

/// The pauses between the attempts of one call: attempts at every poll would keep others, and the
/// group that agrees on a death, from the queue to the home. Each pause is twice as long as the
/// last one, or longer, if the attempt took long.
class Rests {
 public:
  explicit Rests(Hub& hub) noexcept : hub_(hub) {}

  class [[nodiscard]] Pause final : public remote::Waiter {
   public:
    Pause(Rests& rests, std::uint64_t end_ns) noexcept : rests_(rests), end_ns_(end_ns) {}
    [[nodiscard]] bool ready() noexcept override {
      rests_.ended_ns_ = rests_.hub_.fabric.now_ns();
      if (rests_.ended_ns_ >= end_ns_) return true;
      rests_.hub_.fabric.wake_at(end_ns_);
      return false;
    }
    void result() const noexcept {}
    /// What the call waits for has come before the pause was over.
    void end() noexcept { rests_.ended_ns_ = rests_.hub_.fabric.now_ns(); }

   private:
    Rests& rests_;
    std::uint64_t end_ns_;
  };
  /// A pause of up to `longest_ns`, unless the attempt took long; no longer than until then.
  [[nodiscard]] Pause pause(std::uint64_t longest_ns = kLongestRestNs,
                            std::uint64_t until_ns = remote::kForever) noexcept;

 private:
  Hub& hub_;
  std::uint64_t pause_ns_ = 0;
  std::uint64_t ended_ns_ = 0;  // when the last pause ended; 0: there was none
};

/// A call's announcement at its home (CON-C1 to CON-C3); its destructor retracts it, if that has
/// not been done.
class Announcement {
 public:
  /// `checker` is null for a container whose promises are not checked. make() ends `timed_out` if
  /// it could not announce the call until then.
  Announcement(Checker* checker, Rank home, CheckedCall call,
               std::uint64_t until_ns = remote::kForever) noexcept
      : checker_(checker), home_(home), call_(call), until_ns_(until_ns) {}
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
  ~Announcement() {
    if (is_expected_) --checker_->announced_;
    if (stands_) checker_->owe(home_, call_);
    set_standing(false);
  }

  [[nodiscard]] bool needed() const noexcept { return checker_ != nullptr; }
  /// Announces the call, and looks at those of others: `ok` if it may touch the part. Requires
  /// needed(), as does retract().
  [[nodiscard]] remote::Protocol<remote::Status> make();
  /// Retracts the call, whose result stays, whatever comes of this: what cannot be retracted now is
  /// owed.
  [[nodiscard]] remote::Protocol<remote::Status> retract();

  [[nodiscard]] remote::Progress& its_progress() const noexcept { return checker_->progress(); }

 private:
  /// Notes at the moment of posting whether the announcement stands.
  struct Gate {
    SiteGate records;
    Announcement* announcement;
    bool stands;
    /// A member whose part is refused may have no records.
    [[nodiscard]] remote::Status now() const noexcept {
      remote::Status fault = announcement->checker_->part_.fault(records.to);
      if (fault == remote::Status::ok) fault = records.now();
      const bool is_late = stands && fault == remote::Status::ok && announcement->is_late();
      return is_late ? remote::Status::timed_out : fault;
    }
    [[nodiscard]] remote::Status refused() const noexcept { return now(); }
    void posted() const noexcept { announcement->set_standing(stands); }
    void taken() const noexcept {}
  };
  [[nodiscard]] bool is_late() const noexcept {
    return Patience(checker_->hub_.fabric, until_ns_).is_over();
  }
  void set_standing(bool stands) noexcept {
    if (stands_ == stands) return;
    stands_ = stands;
    checker_->count_of(home_, call_) += stands ? 1 : UINT64_MAX;
  }

  Checker* checker_;
  Rank home_;
  CheckedCall call_;
  std::uint64_t until_ns_;
  bool is_expected_ = false;  // by the checker
  bool stands_ = false;
};

}  // namespace dunlin::container
