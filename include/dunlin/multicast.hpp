#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast/switches.hpp>

namespace dunlin::log {
class Disk;
}
namespace dunlin::multicast {
enum class SendResult : std::uint8_t;
struct Delivery;
struct Logged;
struct LogPosition;
class LogCursor;
struct Counters;
/// Called with a batch of messages, in place: they are valid until the upcall returns. The upcall
/// may send, but not poll. An exception that it throws comes out of poll(); the batch counts as
/// delivered.
using Upcall = std::function<void(std::span<const Delivery>)>;
using ReplayUpcall = std::function<void(const Logged&)>;
}  // namespace dunlin::multicast

/// Multicast in a subgroup: messages of several senders, delivered by every member in one order,
/// from view to view. One thread at a time, that of the group, whose poll() makes all progress.
///
///     dunlin::Group group(*fabric, {.subgroups = {{.name = "orders"}}});
///     dunlin::Multicast orders(group, "orders");
///     orders.on_delivery([](std::span<const dunlin::multicast::Delivery> batch) {
///       for (const auto& delivery : batch) apply(delivery.message);
///     });
///     if (orders.send(message) == dunlin::multicast::SendResult::no_room) ...;  // poll, try again
///     dunlin::run(group);
///
/// docs/multicast.md has the promises (MC-O1 to MC-O6), the protocol, and the sources of its ideas.
namespace dunlin {

struct MulticastOptions;

class Multicast {
 public:
  /// Attaches to that subgroup; to be made before the group's first poll(). Each member of the
  /// subgroup must make one (poll() throws at a member that has none), with the same mode,
  /// ring_bytes, window_messages, and switches nulls, one_cache_line and slot_bytes. A member whose
  /// options differ from the first member's leaves the group, and poll() says why. Must outlive the
  /// group's last poll(), and be destroyed before the group. Throws Error.
  Multicast(Group& group, const std::string& subgroup, MulticastOptions options);
  Multicast(Group& group, const std::string& subgroup);
  /// In a subgroup that comes and goes at run time: asks to be in it (see Group::join_subgroup).
  /// Set the handlers before the next poll(). Until joined(), send() returns `wedged`. Its members
  /// must give the same options as above. It need not outlive the group's last poll(): if it is
  /// destroyed before left(), this member has left without delivering what it had received. An
  /// error that would make this member leave the group makes it leave the subgroup. Throws Error.
  [[nodiscard]] static std::unique_ptr<Multicast> join(Group& group, const std::string& subgroup,
                                                       MulticastOptions options, SubgroupJoin join);
  ~Multicast();
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // --- sending -----------------------------------------------------------------------------------
  /// Where to build a message in place. Its data() is null if there is no room now (poll, and try
  /// again), and always for more than largest_in_place() and if this member is no sender. A later
  /// call, and a new view, take it back: commit() before the next poll().
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept;
  /// The prepared message is sent.
  void commit() noexcept;
  /// Copies a message, also one that does not fit in place. Nothing was sent unless the result is
  /// SendResult::sent. Throws Error for a message of more than kMaxCastBytes.
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message);
  [[nodiscard]] std::size_t largest_in_place() const noexcept;
  /// Whether all other members that are there have what was sent here, and will deliver it also if
  /// this member ends now: poll the group until then, before a process ends that must lose nothing.
  /// In the durable mode it is in their logs; in the unordered one they have delivered it.
  [[nodiscard]] bool acknowledged();
  /// The destructor does this, with MulticastOptions::hand_over_ms. Returns whether acknowledged()
  /// became true in that time. No handler is called, and what is delivered meanwhile is dropped, so
  /// nothing but the destructor may follow. It ends at once if a view ends, on a simulated node,
  /// and in a handler.
  bool hand_over(std::uint32_t timeout_ms) noexcept;

  // --- delivery ----------------------------------------------------------------------------------
  /// Called from the group's poll(), also by messages of a view that ends. Set it before the first
  /// one; afterwards it can only be replaced, from outside it. Throws Error if it is called too
  /// late, as on_state and on_replay do.
  void on_delivery(multicast::Upcall upcall);
  /// The next message, which is valid until the next call and the next poll(). Without an upcall:
  /// else throws Error.
  [[nodiscard]] std::optional<multicast::Delivery> next();

  // --- members that come in ----------------------------------------------------------------------
  /// A joiner gets a state from another member: there `save` makes it of all that was delivered so
  /// far, and at the joiner `load` takes it, before anything is delivered. The group's poll() calls
  /// both; set them at all members, before its first call: a joiner leaves the group if the member
  /// that it asks has no `save`, and its poll() says so. Without them, a joiner begins with the
  /// first message of its first view. Until `load` has been called, send() returns
  /// waiting_for_state. An exception of `save` comes out of poll(), and the joiner asks another
  /// member; an exception of `load` comes out of poll(), and the joiner leaves, as it has no state.
  /// If all that had the state are gone, a joiner leaves; of join(), it begins the subgroup anew,
  /// without a state, or leaves if it has a log.
  using Save = std::function<std::vector<std::byte>()>;
  using Load = std::function<void(std::span<const std::byte> state)>;
  void on_state(Save save, Load load);

  // --- the log, in the durable mode --------------------------------------------------------------
  /// Called with each message that is in the log when this member begins: its own ones, and those
  /// that it got from others' logs. The group's poll() calls it, before anything is delivered; set
  /// it before the first poll(). If the log begins with a snapshot (LogTrim), `load` of on_state is
  /// called before, and this for the messages behind it. A member that takes a state (on_state) of
  /// another member gets that instead. An exception comes out of that poll(); the next poll() goes
  /// on with the next message. `load_logged` replaces `load` for the snapshot of the log, for a
  /// user that treats a state of its past otherwise than one of another member; null: `load` gets
  /// both.
  void on_replay(multicast::ReplayUpcall upcall, Load load_logged = nullptr);
  /// Damage that opening the log found and repaired: sentences for the operator.
  [[nodiscard]] std::vector<std::string> log_notices() const;

  /// Where the replay begins, and behind the message that on_replay or next() was given last. To be
  /// asked in on_replay, and between next() and the next poll().
  [[nodiscard]] multicast::LogPosition log_start() const;
  [[nodiscard]] multicast::LogPosition log_end() const;
  /// Likewise, the number of that message's last record.
  [[nodiscard]] std::uint64_t log_record() const;
  /// Reads messages from there on, while others are delivered (multicast/log_cursor.hpp).
  [[nodiscard]] std::shared_ptr<multicast::LogCursor> read_log(multicast::LogPosition at) const;
  /// With LogTrim::keeps_state: trims leave the records from that number on in the log, for such
  /// readers. Set it before the first poll().
  void keep_log_from(std::function<std::uint64_t()> first_record);

  // --- of join() ---------------------------------------------------------------------------------
  /// Whether this member is in the subgroup, and has its state if it needs one.
  [[nodiscard]] bool joined() const noexcept;
  /// Asks to be among the senders, or not to be any more; poll until acknowledged() before that, if
  /// nothing that was sent may be lost.
  void set_sends(bool sends);
  /// Asks to be out of it, once all others have what was sent here (acknowledged()), or after
  /// MulticastOptions::hand_over_ms; send() returns `ended` from now on. The group's poll()
  /// delivers what still counts here, and left() is true.
  void leave();
  /// Whether this member is out of it again; send() then returns `ended`.
  [[nodiscard]] bool left() const noexcept;
  /// A sentence, if this member was refused, or the subgroup was removed, or failed here; empty if
  /// it asked to leave. Also of a declared subgroup whose other members have left so that no quorum
  /// is left (log_quorum, MC-Q2): then this member leaves the group.
  [[nodiscard]] const std::string& why_left() const noexcept;
  /// Which members it waits for before it can begin, and why: a sentence (log_quorum, MC-Q5); empty
  /// if it does not wait.
  [[nodiscard]] const std::string& why_waiting() const noexcept;
  /// Called from the group's poll() when the subgroup begins here, and after each change: after all
  /// deliveries of the one before, and before any of this one. Also without join(), in each view.
  /// Replaces an earlier handler; null: none. What it throws comes out of the group's next poll().
  using MembersHandler = std::function<void(const Subgroup&)>;
  void on_members(MembersHandler handler);

  /// That of the view at hand; while a view ends, and next() has messages of it, still that one.
  [[nodiscard]] const Subgroup& subgroup() const noexcept;
  /// Of all views.
  [[nodiscard]] multicast::Counters counters() const noexcept;
  /// The tables of the views at hand: to look at, not to keep.
  void each_table(const std::function<void(const TableCore&)>& look) const;

 private:
  class Participant;
  explicit Multicast(std::unique_ptr<Participant> participant);
  std::unique_ptr<Participant> participant_;
};

}  // namespace dunlin

namespace dunlin::multicast {

/// The result of Multicast::send(). Only `sent` takes the message; after the other results nothing
/// of it is sent, and the caller still has it.
enum class SendResult : std::uint8_t {
  sent,
  no_room,       // its ring is full, or messages of an earlier view come first: poll, try again
  not_a_sender,  // this member is none of the subgroup's senders in this view
  waiting_for_state,  // this member came in, and has not been given its state: poll, try again
  wedged,             // the view ends, or the first one has not begun: poll, and try again
  ended  // this member leaves, or has left, the group (Group::why_ended() says why) or the subgroup
};

enum class Mode : std::uint8_t {
  unordered,  // delivered as soon as it is received
  ordered,    // delivered in one order, once all members have received it
  durable     // likewise, once it is in the logs of all members, on their disks
};

struct Delivery {
  std::uint32_t sender;  // place in the subgroup's members
  std::uint64_t slot;    // the sender's, in this view
  std::span<const std::byte> message;
};

/// A message in a log; it was stable in some view.
struct Logged {
  std::uint64_t view;       // counted over all restarts
  std::string_view sender;  // its name
  std::span<const std::byte> message;
  std::uint64_t record = 0;  // number of its last record
};

/// A place in a log, between two messages. The logs of all members have equal numbers.
struct LogPosition {
  std::uint64_t number = 1;  // messages that end before this record lie before it
  std::uint64_t from = 1;    // the first record of those that do not, or an earlier one
  std::uint64_t view = 0;    // in force at `from`,
  std::vector<std::string> members = {};  // and its members
};

/// Counts of one member in all views so far.
struct Counters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_delivered = 0;
  std::uint64_t bytes_delivered = 0;
  std::uint64_t records_delivered = 0;
  std::uint64_t nulls = 0;            // own slots used without a message
  std::uint64_t slots_received = 0;   // of others, nulls included
  std::uint64_t receive_batches = 0;  // polls that found new slots
  std::uint64_t records_announced = 0;
  std::uint64_t send_batches = 0;
  std::uint64_t deliver_batches = 0;
  std::uint64_t puts = 0;         // of messages: one for each peer and block of bytes
  std::uint64_t pushes = 0;       // of the hot line: one for each peer
  std::uint64_t log_commits = 0;  // durable: syncs that have been begun
  std::uint64_t no_room = 0;      // attempts that the view refused, for room or because it ends
  std::uint64_t posting_ns = 0;

  Counters& operator+=(const Counters& more) noexcept;
};

}  // namespace dunlin::multicast

namespace dunlin {

namespace multicast {

/// Durable: which part of a member's log is removed. Each member decides for itself. Without it,
/// the log has all messages for ever.
struct LogTrim {
  /// Each time that about so many more bytes are in the log, a part of it may go. 0: never.
  std::uint64_t every_bytes = 0;
  /// What replaces the messages that go. True: a snapshot of the state, which `save` of on_state
  /// makes, and which `load` gets when this member starts again; on_replay then has the messages
  /// behind it. False: nothing; the oldest messages are given up.
  bool keeps_state = true;
  /// Without a state: messages stay until so many bytes of later ones are in the log,
  std::uint64_t least_bytes = 0;
  /// and at least for so long; after a restart, this counts anew.
  std::uint32_t least_seconds = 0;
};

}  // namespace multicast

struct MulticastOptions {
  multicast::Mode mode = multicast::Mode::ordered;
  std::size_t ring_bytes = std::size_t{1} << 20;  // of each sender, at every member; a power of two
  std::uint32_t window_messages = 0;  // own records not yet delivered everywhere; 0: any number
  /// Durable: where the log is, a directory of this member's and this subgroup's own. It is made if
  /// it is not there; its parent must be.
  std::string log_directory = {};
  /// Members whose logs are lost, or had to be emptied: the others go on without messages that only
  /// these logs had.
  std::vector<std::string> log_given_up = {};
  multicast::LogTrim log_trim = {};
  /// Durable: the subgroup begins again, and goes on, with a quorum of its last view (more than
  /// half, or half with its first member), and stops without one. The same at all members. Without
  /// it, all members of the last view are needed to begin again, and any one of them can go on. A
  /// subgroup that comes at run time needs SubgroupJoin::founders for it: it begins a new history
  /// only with all of these, and waits for a quorum of an old one.
  bool log_quorum = false;
  /// So long leave(), Group::leave() and the destructor wait at most until all others have what was
  /// sent here. 0: they do not wait.
  std::uint32_t hand_over_ms = 1'000;
  std::shared_ptr<log::Disk> log_disk = nullptr;  // of a simulator; null: that of the machine
  multicast::Switches switches = {};              // to measure what an optimization is worth
};

}  // namespace dunlin
