#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>

#include "log/disk.hpp"
#include "log/group_commit.hpp"
#include "log/log.hpp"
#include "multicast/ring.hpp"

/// A durable subgroup's log at one member: which views there were, and the records of the messages
/// in each, in their one order. docs/multicast.md ("Durable") says why the members' logs agree. One
/// thread at a time; nothing but the constructor, replay() and finish() waits for the disk.
namespace dunlin::multicast {

/// What a log is compared by when its members start again.
struct JournalState {
  std::uint64_t view = 0;            // the last one that is in it; 0: none
  std::vector<std::string> members;  // of the subgroup in that view
  std::uint64_t next = 1;            // number of the record that comes next
  std::uint64_t chain = 0;           // over all records
  friend bool operator==(const JournalState&, const JournalState&) = default;
};

/// Kinds of records.
enum class Entry : std::uint32_t {
  view = 1,     // number, how many members; of each: length of its name, and the name
  message = 2,  // whose: place in the view's members; turn; what the sender's record had
  part = 3      // likewise; the sender's next one goes on with the message
};

class Journal {
 public:
  /// Opens the log of this name, or begins it. Throws Error.
  Journal(std::shared_ptr<log::Disk> disk, const std::string& directory, const std::string& name);

  /// What was found and set right.
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return log_.notices(); }
  /// As it was opened.
  [[nodiscard]] const JournalState& state() const noexcept { return state_; }
  /// Hands up all whole messages; returns how many. Before the first begin_view().
  std::uint64_t replay(const std::function<void(const Logged&)>& upcall);

  void begin_view(std::uint64_t number, const std::vector<std::string>& members);
  void append(std::uint32_t sender, const Record& record);
  /// Takes back the last records.
  void cut(std::uint64_t records) noexcept { commit_->cut(records); }

  /// How often something was begun, in next() as it was then, or is done.
  bool poll() { return commit_->poll(); }
  [[nodiscard]] std::uint64_t next() const noexcept { return commit_->next(); }
  [[nodiscard]] std::uint64_t durable() const noexcept { return commit_->durable(); }
  [[nodiscard]] std::uint64_t commits() const noexcept { return commit_->commits(); }
  [[nodiscard]] const std::string& failure() const noexcept { return commit_->failure(); }
  void wake(Fabric* fabric) { commit_->wake(fabric); }
  void finish() { commit_->finish(); }

 private:
  void read_views();

  std::shared_ptr<log::Disk> disk_;
  log::Log log_;
  JournalState state_;
  std::unique_ptr<log::GroupCommit> commit_;
};

}  // namespace dunlin::multicast
