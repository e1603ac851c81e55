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
/// Called with a batch of messages in the ring: they are valid until the upcall returns. The upcall
/// may send, but not poll. If it throws, the exception comes out of poll(), and the batch counts as
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
  /// Attaches to that subgroup, before the group's first poll(). Each member of the subgroup must
  /// make one (poll() throws at a member that has none), with equal mode, ring_bytes,
  /// window_messages, and switches nulls, one_cache_line and slot_bytes. A member whose options
  /// differ from the first member's leaves the group, and poll() says why. The Multicast must
  /// outlive the group's last poll(), and be destroyed before the group. Throws Error.
  Multicast(Group& group, const std::string& subgroup, MulticastOptions options);
  Multicast(Group& group, const std::string& subgroup);
  /// Asks to be in a subgroup that comes and goes at run time (see Group::join_subgroup). Set the
  /// handlers before the next poll(). Until joined(), send() returns `wedged`. All members of the
  /// subgroup must give equal options, as for the constructor. The Multicast need not outlive the
  /// group's last poll(): if it is destroyed before left(), this member has left without delivering
  /// what it had received. An error that would make this member leave the group makes it leave the
  /// subgroup. Throws Error.
  [[nodiscard]] static std::unique_ptr<Multicast> join(Group& group, const std::string& subgroup,
                                                       MulticastOptions options, SubgroupJoin join);
  ~Multicast();
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // --- sending -----------------------------------------------------------------------------------
  /// Memory in which to build a message in place. Its data() is null if there is no room now (poll,
  /// and try again), and always for more than largest_in_place(), or if this member is no sender. A
  /// later call, and a new view, take the memory back: commit() before the next poll().
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept;
  /// Sends the prepared message.
  void commit() noexcept;
  /// Copies and sends a message, also one that does not fit in place. Unless the result is
  /// SendResult::sent, nothing was sent. Throws Error for a message of more than kMaxCastBytes.
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message);
  [[nodiscard]] std::size_t largest_in_place() const noexcept;
  /// Whether send() would take a message of so many bytes now.
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;
  /// Sets the handler that the group's poll() calls when there is room for what prepare() or send()
  /// refused last: once after each refusal that polling can end. It may send; it may not poll. An
  /// exception comes out of that poll(). Null: none.
  void on_room(std::function<void()> handler);
  /// Whether all other members that are there have what was sent here, and will deliver it even if
  /// this member ends now: a process that must lose nothing polls the group until then before it
  /// ends. In the durable mode the messages are in the others' logs; in the unordered mode the
  /// others have delivered them.
  [[nodiscard]] bool acknowledged();
  /// Polls until acknowledged(), at most so long; returns whether it became true. The destructor
  /// calls this with MulticastOptions::hand_over_ms. No handler is called, and what is delivered
  /// meanwhile is dropped, so nothing but the destructor may follow. It ends at once if a view
  /// ends, on a simulated node, and in a handler.
  bool hand_over(std::uint32_t timeout_ms) noexcept;

  // --- delivery ----------------------------------------------------------------------------------
  /// Sets the upcall for deliveries, which the group's poll() calls, also with messages of a view
  /// that ends. Set it before the first poll(); afterwards it can only be replaced, from outside
  /// the upcall. Throws Error if it is called too late, as on_state and on_replay do.
  void on_delivery(multicast::Upcall upcall);
  /// The next message, valid until the next call and the next poll(). Throws Error if an upcall is
  /// set.
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
  /// Sentences for the operator about damage that opening the log found and repaired.
  [[nodiscard]] std::vector<std::string> log_notices() const;

  /// The position in the log where the replay begins, or behind the message that on_replay or
  /// next() got last. To be called in on_replay, and between next() and the next poll().
  [[nodiscard]] multicast::LogPosition log_start() const;
  [[nodiscard]] multicast::LogPosition log_end() const;
  /// The number of the last record of the message that on_replay or next() got last.
  [[nodiscard]] std::uint64_t log_record() const;
  /// Reads the log's messages from that position on, while others are delivered
  /// (multicast/log_cursor.hpp).
  [[nodiscard]] std::shared_ptr<multicast::LogCursor> read_log(multicast::LogPosition at) const;
  /// Sets a function for LogTrim::keeps_state: trims leave the records from the number that it
  /// returns on in the log, for the readers of read_log(). Set it before the first poll().
  void keep_log_from(std::function<std::uint64_t()> first_record);

  // --- after join() ------------------------------------------------------------------------------
  /// Whether this member is in the subgroup, and has its state if it needs one.
  [[nodiscard]] bool joined() const noexcept;
  /// Asks that this member becomes a sender, or ceases to be one; poll until acknowledged() before
  /// that, if nothing that was sent may be lost.
  void set_sends(bool sends);
  /// Asks to leave the subgroup, once all others have what was sent here (acknowledged()), or after
  /// MulticastOptions::hand_over_ms; from now on, send() returns `ended`. The group's poll()
  /// delivers what still counts here; then left() is true.
  void leave();
  /// Whether this member has left the subgroup; send() returns `ended` then.
  [[nodiscard]] bool left() const noexcept;
  /// A sentence that says why this member left the subgroup: it was refused, or the subgroup was
  /// removed, or failed here; empty if it asked to leave. If the other members of a declared
  /// subgroup have left so that no quorum is left (log_quorum, MC-Q2), this member leaves the
  /// group, and this says so.
  [[nodiscard]] const std::string& why_left() const noexcept;
  /// A sentence that says for which members this one waits before it can begin, and why
  /// (log_quorum, MC-Q5); empty if it does not wait.
  [[nodiscard]] const std::string& why_waiting() const noexcept;
  /// Sets the handler that the group's poll() calls when the subgroup begins here, and after each
  /// change: after all deliveries of the former state, and before any delivery of this one. Without
  /// join(), it is called in each view. Replaces an earlier handler; null: none. What it throws
  /// comes out of the group's next poll().
  using MembersHandler = std::function<void(const Subgroup&)>;
  void on_members(MembersHandler handler);

  /// The subgroup in the view at hand; while next() still has messages of a view that ends, in that
  /// view.
  [[nodiscard]] const Subgroup& subgroup() const noexcept;
  /// Counts over all views so far.
  [[nodiscard]] multicast::Counters counters() const noexcept;
  /// Visits the tables of the views at hand: to look at, not to keep.
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
  no_room,       // the ring is full, or messages of an earlier view come first: poll, try again
  not_a_sender,  // this member is no sender of the subgroup in this view
  /// This member came in, and has not been given its state: poll, and try again.
  waiting_for_state,
  wedged,  // the view ends, or the first one has not begun: poll, try again
  /// This member leaves, or has left, the group (Group::why_ended() says why) or the subgroup.
  ended
};

enum class Mode : std::uint8_t {
  unordered,  // delivered as soon as it is received
  ordered,    // delivered in one order, once all members have received it
  /// Delivered in one order, once the message is in the logs of all members, on their disks.
  durable
};

struct Delivery {
  std::uint32_t sender;  // index of the member in the subgroup
  std::uint64_t slot;    // number of the sender's slot in this view
  std::span<const std::byte> message;
};

/// A message in a log; it was stable in some view.
struct Logged {
  std::uint64_t view;       // the view's number, counted over all restarts
  std::string_view sender;  // the sender's name
  std::span<const std::byte> message;
  std::uint64_t record = 0;  // the number of the message's last record
};

/// A position in a log, between two messages. The logs of all members number their records alike.
struct LogPosition {
  std::uint64_t number = 1;  // messages that end before this record lie before the position
  std::uint64_t from = 1;    // the first record of the messages behind, or an earlier one
  std::uint64_t view = 0;    // the view in force at `from`
  std::vector<std::string> members = {};  // the members of that view
};

/// Counts at one member, over all views so far.
struct Counters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_delivered = 0;
  std::uint64_t bytes_delivered = 0;
  std::uint64_t records_delivered = 0;
  std::uint64_t nulls = 0;            // own slots that were used without a message
  std::uint64_t slots_received = 0;   // slots of others, nulls included
  std::uint64_t receive_batches = 0;  // polls that found new slots
  std::uint64_t records_announced = 0;
  std::uint64_t send_batches = 0;
  std::uint64_t deliver_batches = 0;
  std::uint64_t puts = 0;         // puts of messages: one for each peer and block of bytes
  std::uint64_t pushes = 0;       // pushes of the hot line: one for each peer
  std::uint64_t log_commits = 0;  // durable: syncs that have been begun
  std::uint64_t no_room = 0;      // sends that were refused, for room or because the view ends
  std::uint64_t posting_ns = 0;

  Counters& operator+=(const Counters& more) noexcept;
};

}  // namespace dunlin::multicast

namespace dunlin {

namespace multicast {

/// For the durable mode: which part of a member's log is removed. Each member decides for itself.
/// Without a LogTrim, the log keeps all messages for ever.
struct LogTrim {
  /// A part of the log may go each time that about so many more bytes are in it. 0: never.
  std::uint64_t every_bytes = 0;
  /// What replaces the messages that go. True: a snapshot of the state, which `save` of on_state
  /// makes, and which `load` gets when this member starts again; on_replay then gets the messages
  /// behind it. False: nothing; the oldest messages are given up.
  bool keeps_state = true;
  /// Without a state: messages stay at least until so many bytes of later messages are in the log.
  std::uint64_t least_bytes = 0;
  /// Without a state: messages stay at least for so long; a restart begins to count anew.
  std::uint32_t least_seconds = 0;
};

}  // namespace multicast

struct MulticastOptions {
  multicast::Mode mode = multicast::Mode::ordered;
  /// Bytes of each sender's ring, at every member; a power of two.
  std::size_t ring_bytes = std::size_t{1} << 20;
  std::uint32_t window_messages = 0;  // own records not yet delivered everywhere; 0: no limit
  /// For the durable mode: the directory of the log, which belongs to this member and this subgroup
  /// alone. It is made if it does not exist; its parent must exist.
  std::string log_directory = {};
  /// Members whose logs are lost, or had to be emptied: the others go on without messages that only
  /// these logs had.
  std::vector<std::string> log_given_up = {};
  multicast::LogTrim log_trim = {};
  /// For the durable mode: the subgroup begins again, and goes on, with a quorum of its last view
  /// (more than half, or half with its first member), and stops without one. All members give the
  /// same value. If false, all members of the last view are needed to begin again, and any one of
  /// them can go on. A subgroup that comes at run time needs SubgroupJoin::founders for a quorum:
  /// it begins a new history only with all of these, and waits for a quorum of an old one.
  bool log_quorum = false;
  /// How long leave(), Group::leave() and the destructor wait at most until all others have what
  /// was sent here. 0: they do not wait.
  std::uint32_t hand_over_ms = 1'000;
  std::shared_ptr<log::Disk> log_disk = nullptr;  // a simulated disk; null: the machine's
  multicast::Switches switches = {};              // to measure what an optimization is worth
};

}  // namespace dunlin
