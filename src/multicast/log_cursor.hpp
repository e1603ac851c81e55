#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <dunlin/multicast.hpp>

#include "log/tail_reader.hpp"
#include "multicast/assembler.hpp"

namespace dunlin::multicast {

/// Reads delivered messages from a member's own log while the log grows and is trimmed, step by
/// step (Multicast::read_log). One thread at a time, that of the group.
///
///     if (cursor->begin_step() == LogCursor::Step::ready)
///       while (budget.left())
///         if (const auto message = cursor->next(end, budget)) use(*message);
class LogCursor {
 public:
  /// What one step may read; next() subtracts what it has read.
  struct Budget {
    std::size_t records = 0;
    std::size_t bytes = 0;
    [[nodiscard]] bool left() const noexcept { return records > 0 && bytes > 0; }
  };
  enum class Step : std::uint8_t {
    ready,
    busy,    // the disk has the log: ask again in the next poll
    trimmed  // the next record is gone: first() is the oldest record
  };
  /// `may_read`: whether no commit is under way, which is asked in each step; if one is, `waits`
  /// keeps another one from beginning (GroupCommit).
  LogCursor(log::Log& log, LogPosition at, std::function<bool()> may_read,
            std::shared_ptr<bool> waits);
  ~LogCursor() { pause(); }
  LogCursor(const LogCursor&) = delete;
  LogCursor& operator=(const LogCursor&) = delete;

  /// Begins a step, which ends before the next poll(). If the log is busy, the caller asks again in
  /// the next poll, or pauses: commits wait for it.
  [[nodiscard]] Step begin_step();
  void pause() noexcept { *waits_ = false; }
  /// The next message that ends before the record `end`; valid until the next call. All records
  /// below `end` must have been delivered. None if there is no such message, or the budget is used
  /// up. Throws Error for a damaged record.
  [[nodiscard]] std::optional<Logged> next(std::uint64_t end, Budget& budget);
  /// The number of the next record.
  [[nodiscard]] std::uint64_t number() const noexcept { return reader_.number(); }
  /// Whether it has found its first record; before, it passes over records of a file.
  [[nodiscard]] bool under_way() const noexcept { return under_way_; }
  /// The number of the oldest record in the log. To be called in a step.
  [[nodiscard]] std::uint64_t first() const noexcept { return reader_.first(); }

 private:
  std::function<bool()> may_read_;
  std::shared_ptr<bool> waits_;
  std::uint64_t number_;  // messages that end before it are passed over
  log::TailReader reader_;
  Assembler assembler_;
  bool under_way_ = false;
};

}  // namespace dunlin::multicast
