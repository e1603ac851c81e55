#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <dunlin/fabric/memory.hpp>

#include "container/collectives.hpp"

/// What a call of a Collectives awaits.
namespace dunlin::container {

/// Until another member's message of this call is here. The message comes before the member's end:
/// what has arrived counts.
class Arrival final : public remote::Waiter {
 public:
  Arrival(CollectivesState::Turn& turn, std::uint32_t from, std::uint64_t word_offset) noexcept
      : turn_(turn), from_(from), word_offset_(word_offset) {}

  [[nodiscard]] bool ready() noexcept override {
    CollectivesState& set = turn_.set;
    const std::uint64_t word =
        memory::load(*reinterpret_cast<const std::uint64_t*>(set.site->memory() + word_offset_));
    if (call_word::number_of(word) < turn_.number()) {
      set.waits_for = from_;
      status_ = set.fault(from_);
      return status_ != remote::Status::ok;
    }
    // It may be of the next call already: the sender of a barrier's word goes on without us.
    const bool differs = call_word::number_of(word) == turn_.number() && word != turn_.word;
    if (differs) set.end(remote::Status::refused, set.members[from_]);
    set.call_differs = differs;
    status_ = differs ? remote::Status::refused : remote::Status::ok;
    set.saw_ended(from_, turn_.number() - 1);
    return true;
  }
  [[nodiscard]] remote::Status result() const noexcept { return status_; }

 private:
  CollectivesState::Turn& turn_;
  std::uint32_t from_;
  std::uint64_t word_offset_;
  remote::Status status_ = remote::Status::ok;
};

/// Posts operations to a member's part, and awaits that the fabric has taken them.
class Posting final : public remote::Waiter {
 public:
  Posting(CollectivesState& set, std::uint32_t to) noexcept : set_(set), to_(to) {}
  void add(const Operation& operation) noexcept {
    const bool is_copied = operation.bytes <= set_.hub.fabric.properties().max_inline_bytes;
    operations_.at(count_++) = is_copied ? operation : operation.notify(set_.sent);
  }

  [[nodiscard]] bool ready() noexcept override {
    if (status_ = set_.fault(to_); status_ != remote::Status::ok) return true;
    const dunlin::Posted posted =
        set_.hub.fabric.post(std::span(operations_).subspan(accepted_, count_ - accepted_));
    accepted_ += posted.accepted;
    if (posted.all()) return true;
    set_.waits_for = to_;
    if (remote::is_for_now(posted.refusal)) return false;
    status_ = remote::Status::out_of_range;
    return true;
  }
  [[nodiscard]] remote::Status result() const noexcept { return status_; }

 private:
  CollectivesState& set_;
  std::uint32_t to_;
  remote::Status status_ = remote::Status::ok;
  std::size_t count_ = 0;
  std::size_t accepted_ = 0;
  std::array<Operation, 2> operations_;
};

/// When a member may be read.
struct FaultGate {
  CollectivesState* set;
  std::uint32_t member;
  [[nodiscard]] remote::Status now() const noexcept { return set->fault(member); }
  [[nodiscard]] remote::Status refused() const noexcept { return now(); }
  void posted() const noexcept {}
  void taken() const noexcept {}
};

}  // namespace dunlin::container
