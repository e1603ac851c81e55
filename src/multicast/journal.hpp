#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/disk.hpp"
#include "log/group_commit.hpp"
#include "log/log.hpp"
#include "multicast/assembler.hpp"
#include "multicast/log_cursor.hpp"
#include "multicast/logged_view.hpp"
#include "multicast/restart.hpp"
#include "multicast/ring.hpp"

/// A durable subgroup's log at one member: which views there were, and the records of the messages
/// in each, in their one order. docs/multicast.md ("Durable") says why the members' logs agree. One
/// thread at a time.
namespace dunlin::multicast {

/// The members compare their logs by this when a view begins.
struct JournalState {
  LogPlace end;
  LogPlace first = {};              // the log's oldest record
  std::vector<LoggedView> views{};  // the last views
};

/// Where a replay begins: messages that end before `number` are in the snapshot's state, or were
/// given up. Records from `from` on belong to later messages, in part.
struct ReplayStart {
  std::uint64_t number = 1;
  std::uint64_t from = 1;
  LoggedView view = {};  // in force at `from`
};

using JournalReader = log::LogReader;

/// The most that one poll() replays, as others wait to hear of us; the last record may have more.
inline constexpr std::size_t kRecordsAtOnce = 1'000;
inline constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;

/// Hands up the messages of a log, some at a time.
class Replay {
 public:
  /// Leaves out the first `but_for` messages.
  explicit Replay(log::Log& log, const ReplayStart& start = {}, std::uint64_t but_for = 0);
  /// Reads at most so many records, or bytes. Returns whether there may be more.
  bool step(const std::function<void(const Logged&)>& upcall, std::size_t records,
            std::size_t bytes = kBytesAtOnce);
  /// The first record of the messages that are incomplete so far; none: there is no such message.
  [[nodiscard]] std::optional<std::uint64_t> first_open() const noexcept {
    return assembler_.first_open();
  }
  /// The position behind the message that was handed up last.
  [[nodiscard]] LogPosition position() const;

 private:
  log::LogReader reader_;
  std::uint64_t number_;  // messages that end before it are passed over
  std::uint64_t but_for_;
  std::uint64_t next_;  // the number of the next record
  Assembler assembler_;
};

class Journal {
 public:
  /// Opens the log of this name, or begins it. Throws Error.
  Journal(std::shared_ptr<log::Disk> disk, const std::string& directory, const std::string& name,
          std::uint64_t segment_bytes = kMostSegmentBytes);
  static constexpr std::uint64_t kMostSegmentBytes = std::uint64_t{64} << 20;
  /// Trimming removes whole segments, so they are no longer than the part to be removed at once.
  [[nodiscard]] static std::uint64_t segment_bytes_for(const LogTrim& trim) noexcept;

  /// Damage that opening the log found and repaired, as sentences.
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return log_.notices(); }
  // --- only while it is settled(), as these read the disk ----------------------------------------
  /// `live`: this member has gone on with the log from an earlier view. Then the log has all
  /// records, and the views from the last one with messages on are enough.
  [[nodiscard]] JournalState read_state(bool live);
  [[nodiscard]] Replay replay(std::uint64_t but_for = 0) { return Replay(log_, start_, but_for); }
  /// The log's snapshot; none: the log has all records.
  [[nodiscard]] std::optional<log::Snapshot> read_snapshot();
  /// The state in the snapshot; none: there is no snapshot, or none with a state.
  [[nodiscard]] std::optional<std::vector<std::byte>> read_state_of_user();
  [[nodiscard]] std::unique_ptr<JournalReader> read_from(std::uint64_t number) {
    return std::make_unique<JournalReader>(log_, number);
  }
  /// Begins to read, also while records wait to be written (LogCursor).
  [[nodiscard]] std::unique_ptr<LogCursor> follow_from(LogPosition at) {
    return std::make_unique<LogCursor>(
        log_, std::move(at), [this] { return commit_->may_read(); }, commit_->reader_waits());
  }
  /// The position before the messages that a replay hands up.
  [[nodiscard]] LogPosition start() const {
    return {.number = start_.number,
            .from = start_.from,
            .view = start_.view.number,
            .members = start_.view.members};
  }
  [[nodiscard]] std::uint64_t chain_before(std::uint64_t number) {
    return log_.chain_before(number);
  }

  // --- appending ---------------------------------------------------------------------------------
  void begin_view(std::uint64_t number, const std::vector<std::string>& members);
  void append(std::uint32_t sender, const Record& record);
  /// Appends a record of another member.
  void append_again(std::uint32_t kind, std::span<const std::byte> payload) {
    commit_->append(kind, {}, payload);
    bytes_ += payload.size();
  }
  /// The `from` of the latest snapshot: earlier records may be gone.
  [[nodiscard]] std::uint64_t least_from() const noexcept { return least_from_; }
  /// Whether the view of that record is known, so that a snapshot can name it.
  [[nodiscard]] bool knows_view_of(std::uint64_t number) { return !views_before(number).empty(); }
  /// Stores a snapshot that stands for all messages that end before `number`; later messages begin
  /// at `from` or later, and have `bytes_behind` to be replayed. `state`: the user's; none: the
  /// messages are given up. Removes the files that no restart needs any more.
  void store(std::uint64_t number, std::uint64_t from,
             std::optional<std::span<const std::byte>> state, std::uint64_t bytes_behind);
  /// Gives up the oldest messages, but keeps so many bytes of the last records. Returns how many
  /// records are given up. Requires settled(). Throws Error if the log holds a state: the member
  /// that stored it replaces it by a newer one.
  std::uint64_t give_up(std::uint64_t least_bytes);
  /// Records appended from here on go to a copy of another log, which begins with that log's
  /// snapshot, if it has one. The old log counts after a crash before end_copy() (LOG-S3). Requires
  /// settled(). Throws Error for a snapshot that no journal wrote.
  void begin_copy(std::optional<log::Snapshot> snapshot);
  void end_copy() noexcept;
  /// Goes back to the log before the copy. Requires settled(), and copying().
  void drop_copy();
  [[nodiscard]] bool copying() const noexcept { return commit_->copying(); }
  /// Takes back the last records.
  void cut(std::uint64_t records) noexcept { commit_->cut(records); }

  bool poll() { return commit_->poll(); }
  [[nodiscard]] bool settled() const noexcept { return commit_->settled(); }
  [[nodiscard]] std::uint64_t next() const noexcept { return commit_->next(); }
  [[nodiscard]] std::uint64_t durable() const noexcept { return commit_->durable(); }
  /// About how many bytes of records a restart would replay.
  [[nodiscard]] std::uint64_t bytes_to_replay() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t commits() const noexcept { return commit_->commits(); }
  [[nodiscard]] const std::string& failure() const noexcept { return commit_->failure(); }
  /// The sentence about a failure of the log, with the log's name.
  [[nodiscard]] std::string blame(const std::string& what) const {
    const std::string log = "log '" + name_ + "': ";
    return what.starts_with(log) ? what : log + what;
  }
  void wake(Fabric* fabric) { commit_->wake(fabric); }
  void finish() { commit_->finish(); }

 private:
  void begin_with(const log::Snapshot& snapshot);
  void note(const log::Record& record, std::uint64_t chain_before);
  [[nodiscard]] std::vector<LoggedView> views_before(std::uint64_t number);

  std::string name_;
  std::shared_ptr<log::Disk> disk_;
  std::mutex mutex_;               // protects views_, which the log's worker changes, too
  std::vector<LoggedView> views_;  // the last views; perhaps some that have been cut off, too
  ReplayStart start_;
  std::uint64_t least_from_ = 1;
  std::uint64_t bytes_ = 0;
  struct Original {  // while there is a copy
    std::vector<LoggedView> views;
    ReplayStart start;
    std::uint64_t bytes;
    std::uint64_t least_from;
  };
  Original original_;
  log::Log log_;
  std::unique_ptr<log::GroupCommit> commit_;
};

}  // namespace dunlin::multicast
