#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/disk.hpp"
#include "log/group_commit.hpp"
#include "log/log.hpp"
#include "multicast/long_messages.hpp"
#include "multicast/restart.hpp"
#include "multicast/ring.hpp"

/// A durable subgroup's log at one member: which views there were, and the records of the messages
/// in each, in their one order. docs/multicast.md ("Durable") says why the members' logs agree. One
/// thread at a time.
namespace dunlin::multicast {

/// The members compare their logs by this when a view begins.
struct JournalState {
  LogPlace end;
  std::vector<LoggedView> views;  // the last ones
};

using JournalReader = log::LogReader;

/// In one poll(): others wait to hear of us. The last record may have more bytes.
inline constexpr std::size_t kRecordsAtOnce = 1'000;
inline constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;

/// Hands up the messages of a log, some at a time.
class Replay {
 public:
  /// All but the first messages.
  explicit Replay(log::Log& log, std::uint64_t but_for = 0);
  /// At most so many records, or bytes. Returns whether there may be more.
  bool step(const std::function<void(const Logged&)>& upcall, std::size_t records,
            std::size_t bytes = kBytesAtOnce);

 private:
  void take(const log::Record& record, const std::function<void(const Logged&)>& upcall);

  log::Log& log_;
  log::LogReader reader_;
  std::uint64_t but_for_;
  std::uint64_t view_ = 0;
  std::vector<std::string> members_;
  std::vector<Reassembly> reassemblies_;
};

/// Kinds of records.
enum class Entry : std::uint32_t {
  view = 1,     // number, how many members; of each: length of its name, and the name
  message = 2,  // whose: place in the view's members; slot; what the sender's record had
  fragment = 3  // likewise; the sender's next one goes on with the message
};

class Journal {
 public:
  /// Opens the log of this name, or begins it. Throws Error.
  Journal(std::shared_ptr<log::Disk> disk, const std::string& directory, const std::string& name);

  /// Damage that opening the log found and repaired, as sentences.
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return log_.notices(); }
  // --- only while it is settled(), as these read the disk
  // -----------------------------------------
  /// `live`: this member has gone on with the log from an earlier view, so only its end and the
  /// last view's number are needed. Otherwise its views are known from opening it, or all of it is
  /// read.
  [[nodiscard]] JournalState read_state(bool live);
  [[nodiscard]] Replay replay(std::uint64_t but_for = 0) { return Replay(log_, but_for); }
  [[nodiscard]] std::unique_ptr<JournalReader> read_from(std::uint64_t number) {
    return std::make_unique<JournalReader>(log_, number);
  }
  [[nodiscard]] std::uint64_t chain_before(std::uint64_t number) {
    return log_.chain_before(number);
  }

  // --- appending
  // ----------------------------------------------------------------------------------
  /// The log is as good as one whose last view has this number.
  void goes_on_from(std::uint64_t view) noexcept { last_view_ = view; }
  void begin_view(std::uint64_t number, const std::vector<std::string>& members);
  void append(std::uint32_t sender, const Record& record);
  /// A record of another member's.
  void append_again(std::uint32_t kind, std::span<const std::byte> payload) {
    commit_->append(kind, {}, payload);
  }
  /// Takes back the last records.
  void cut(std::uint64_t records) noexcept { commit_->cut(records); }

  bool poll() { return commit_->poll(); }
  [[nodiscard]] bool settled() const noexcept { return commit_->settled(); }
  [[nodiscard]] std::uint64_t next() const noexcept { return commit_->next(); }
  [[nodiscard]] std::uint64_t durable() const noexcept { return commit_->durable(); }
  [[nodiscard]] std::uint64_t commits() const noexcept { return commit_->commits(); }
  [[nodiscard]] const std::string& failure() const noexcept { return commit_->failure(); }
  /// A failure of the log, as a sentence that names it.
  [[nodiscard]] std::string blame(const std::string& what) const {
    const std::string log = "log '" + name_ + "': ";
    return what.starts_with(log) ? what : log + what;
  }
  void wake(Fabric* fabric) { commit_->wake(fabric); }
  void finish() { commit_->finish(); }

 private:
  void note_view(const log::Record& record, std::uint64_t chain_before);

  std::string name_;
  std::shared_ptr<log::Disk> disk_;
  std::vector<LoggedView> views_;  // the last ones that were there at
  LogPlace known_;                 // this end
  log::Log log_;
  std::uint64_t last_view_ = 0;  // that we go on from
  std::unique_ptr<log::GroupCommit> commit_;
};

}  // namespace dunlin::multicast
