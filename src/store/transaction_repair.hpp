#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/format.hpp"

namespace dunlin::store {

struct State;

/// What has become of a transaction whose writer is gone.
enum class TransactionFate : std::uint8_t { not_done, done, unknown };

/// STO-8. A home's work on transactions whose writers are gone. A home that finds the lock of one
/// looks into the writer's record. If a home that is left has the mark there, all do what their
/// records say; else none has done anything yet, and the locks are given back.
class TransactionRepair {
 public:
  explicit TransactionRepair(State& state) noexcept;
  [[nodiscard]] remote::Progress& its_progress() const noexcept;

  /// Returns what has become of the transaction with that lock word. `unknown`: the other homes are
  /// asked, and State::members_changed() is called once they have answered.
  [[nodiscard]] TransactionFate fate_of(std::uint64_t lock);
  /// The number of the whole record that belongs to that lock.
  [[nodiscard]] std::optional<std::size_t> record_of(std::uint64_t lock, Image& record) noexcept;
  /// Does to that chain what the record says: for the first time, or again.
  void redo(std::uint64_t lock, const Place& main) noexcept;
  /// Returns how many questions have been answered.
  std::size_t poll();

 private:
  /// A question to the other homes of a transaction: has it happened?
  struct Inquiry {
    std::uint64_t lock = 0;
    std::size_t record = 0;
    std::uint32_t homes = 0;
    std::array<std::uint16_t, kMaxTransactionHomes> ranks{};
    TransactionFate fate = TransactionFate::unknown;
  };

  [[nodiscard]] remote::Protocol<remote::Status> ask(Inquiry& inquiry);
  [[nodiscard]] bool may_be_asked(Rank home, const Inquiry& inquiry) const noexcept;
  void redo_item(const TransactionItem& item) noexcept;

  State& state_;
  std::vector<std::unique_ptr<Inquiry>> inquiries_;
  remote::Runs asking_;
};

}  // namespace dunlin::store
