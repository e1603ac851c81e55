#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/carrier.hpp"
#include "pubsub/client_numbers.hpp"
#include "pubsub/log_history.hpp"
#include "pubsub/poll_clock.hpp"
#include "pubsub/reader_core.hpp"
#include "pubsub/remote_writer.hpp"
#include "pubsub/storage.hpp"
#include "pubsub/writer_core.hpp"

/// A topic at one member: its endpoints and its stored samples, as the messages of its subgroup
/// make them. Endpoints are announced by messages of the same subgroup, so all members see the same
/// endpoints at the same place among the samples.
///
///  PUB-T1  A writer's announcement comes before its samples (MC-O1); a writer sends none before
///          its own announcement has come back to it, and was not refused.
///  PUB-T2  A reader begins where its own announcement lies in the order: it gets the samples
///          stored before it first, then those behind it. So there is neither gap nor duplicate.
///  PUB-T3  A topic has the type of its first endpoint. An endpoint of another type is refused, by
///          the same decision at all members.
///  PUB-T5  The topic goes on while late readers are on their way through what is stored, and each
///          poll gives them a bounded part of it. It waits for them only when too many samples
///          are overtaken: dropped by its policy, and before a reader on its way (storage.hpp).
///  PUB-T4  The endpoints of a member that has left the subgroup go, after its last sample and
///          before the first one of the next view.
namespace dunlin::pubsub {

class TopicCore : public std::enable_shared_from_this<TopicCore> {
 public:
  /// Throws Error. A carrier must be set before anything else is called.
  TopicCore(Group& group, std::shared_ptr<PollClock> clock, std::string name, TopicQos qos,
            std::string type_name);

  // --- for its carrier ---------------------------------------------------------------------------
  void carried_by(Carrier& carrier) noexcept { carrier_ = &carrier; }
  /// Gives the topic its number among the topics of an order: from now on it may send.
  void give_number(std::uint32_t number) noexcept { number_ = number; }
  /// The first step of a poll: withdraws what this member has closed, and announces new endpoints.
  std::size_t begin_poll();
  /// Gives stored samples to late readers; `most` is the number of messages that this poll may
  /// take.
  std::size_t begin_drain(std::size_t& most);
  /// Whether this member has a writer of the topic, or a message that is not sent yet.
  [[nodiscard]] bool has_to_send() const noexcept { return !writers_.empty() || !outbox_.empty(); }
  /// Whether the topic takes no message now.
  [[nodiscard]] bool waits() { return waits_for_a_reader() || waits_for_late_readers(); }
  void take(const multicast::Delivery& delivery);
  void end_drain(std::size_t messages) noexcept;
  /// The last step of a poll: fires what is due. Returns whether something waits in the topic.
  [[nodiscard]] bool end_poll();
  /// Removes the endpoints of members that are in the subgroup no more (PUB-T4).
  void refresh_members();
  /// Says that this member will never be in the topic, for that reason.
  void refuse(std::string why);
  /// Tells handlers what has changed; `failure` becomes the first exception of a handler.
  void flush(std::exception_ptr& failure);
  /// Whether no entity of the topic is left here, and all that was sent here has come back.
  /// `leaving_withdraws`: what is not sent yet of closed entities need not be sent.
  [[nodiscard]] bool unused(bool leaving_withdraws) const noexcept;
  /// Ends the topic; calls on entities that still exist return `ended`.
  void end() noexcept;
  // These are in topic_state.cpp.
  enum class StateFrom : std::uint8_t {
    member,  // of another member: its endpoints are the present ones
    log      // of the log: its endpoints are gone
  };
  [[nodiscard]] std::vector<std::byte> save();
  void load(std::span<const std::byte> state, StateFrom from);
  void replay(const multicast::Logged& logged);
  // These are in topic_log.cpp.
  [[nodiscard]] std::uint64_t keep_log_from() const noexcept;
  [[nodiscard]] bool stays_in_log() const noexcept { return log_history_ != nullptr; }

  std::shared_ptr<WriterCore> make_writer(std::shared_ptr<const TypeSupport> type,
                                          const DataWriterQos& qos);
  std::shared_ptr<ReaderCore> make_reader(std::shared_ptr<const TypeSupport> type,
                                          const DataReaderQos& qos, AnyReader::Filter filter);
  [[nodiscard]] std::vector<EndpointInfo> endpoints() const;
  [[nodiscard]] std::uint64_t endpoint_changes() const noexcept { return endpoint_changes_; }
  [[nodiscard]] bool has_reader_of(std::string_view member) const noexcept {
    const auto found = members_.find(member);
    return found != members_.end() && !found->second.readers.empty();
  }
  void assert_liveliness_of_participant();

  // --- for the writers of this member ------------------------------------------------------------
  [[nodiscard]] Channel* channel() const noexcept {
    return carrier_ != nullptr ? carrier_->channel() : nullptr;
  }
  [[nodiscard]] Carrier* carrier() const noexcept { return carrier_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Whether the topic may send; a topic of an order waits for its number first.
  [[nodiscard]] bool may_send() const noexcept { return number_ != 0 || qos_.order.empty(); }
  [[nodiscard]] WriteResult send(std::span<const std::byte> message);
  [[nodiscard]] std::uint64_t now_ns() noexcept { return clock_->now_ns(); }
  [[nodiscard]] bool ended() const noexcept;
  /// The fabric; null once the topic has ended.
  [[nodiscard]] const Fabric* fabric() const noexcept {
    return ended_ ? nullptr : &group_.fabric();
  }
  /// Says that a late reader has room again.
  void wake() const {
    if (!ended_) group_.fabric().wake_at(clock_->now_ns());
  }
  void due_at(std::uint64_t time_ns) noexcept {
    if (time_ns < due_ns_) due_ns_ = time_ns;
  }
  [[nodiscard]] std::uint64_t due_ns() const noexcept { return due_ns_; }

  std::shared_ptr<const TypeSupport> type;  // the type of the AnyTopic that made it
  InconsistentTopicStatus inconsistent;
  std::function<void()> on_inconsistent;
  std::function<void(const ClientStamp&)> on_client;
  TopicCounters counters;
  std::string why_refused;
  bool is_awake = false;  // its carrier polls it

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& type_name() const noexcept { return type_name_; }
  [[nodiscard]] const TopicQos& qos() const noexcept { return qos_; }
  [[nodiscard]] const std::string& type_text() const noexcept { return type_text_; }
  [[nodiscard]] bool joined() const noexcept;
  [[nodiscard]] std::string why_waiting() const;
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// The position of the newest sample of all topics of the order.
  [[nodiscard]] std::uint64_t order_position() const noexcept {
    return carrier_ != nullptr ? carrier_->position() : 0;
  }
  /// Whether a handle of the topic or of one of its entities is held here.
  [[nodiscard]] bool is_held() const noexcept { return type != nullptr; }
  [[nodiscard]] bool has_endpoints() const noexcept {
    return !writers_.empty() || !readers_.empty();
  }
  /// Called when nothing of the topic is held here: forgets what its handles have set.
  void let_go() noexcept;
  /// Whether the topic has nothing to do in a poll before something happens to it.
  [[nodiscard]] bool is_idle() const noexcept;
  [[nodiscard]] std::uint64_t beginning() const noexcept { return beginning_; }
  [[nodiscard]] std::size_t held_in_memory() const noexcept {
    if (log_history_) return log_history_->size();
    return storage_ ? storage_->size() : 0;
  }
  [[nodiscard]] const ClientNumbers& clients() const noexcept { return clients_; }

 private:
  struct RemoteReader {
    std::uint16_t number = 0;
    DataReaderQos qos = {};
    std::string type_text = {};
    bool refused = false;
    std::vector<WriterCore*> writers = {};  // matching writers of this member
  };
  struct Member {
    std::string_view name;
    std::optional<Rank> rank = {};  // the rank of the process with that name
    std::vector<std::shared_ptr<RemoteWriter>> writers = {};  // by number; null: none
    std::map<std::uint16_t, RemoteReader> readers = {};
  };

  // These are in topic_core.cpp.
  std::size_t send_outbox();
  [[nodiscard]] bool waits_for_a_reader();
  void receive(const multicast::Delivery& delivery);
  void data(const MessageHeader& header, std::span<const std::byte> payload,
            const std::shared_ptr<RemoteWriter>& writer);
  [[nodiscard]] bool is_new(MessageHeader& header, std::span<const std::byte>& payload);
  void hear(Member& member, RemoteWriter& writer);
  void close_endpoints();
  void check_time();
  void recompute_due();

  // These are in topic_endpoints.cpp.
  void forget_member(Member& member);
  [[nodiscard]] std::string_view interned(std::string_view name);
  [[nodiscard]] bool takes_type(const std::string& text);
  void begin(std::string_view member, const MessageHeader& header) noexcept;
  void refuse(std::string_view member, const char* what, std::uint16_t number,
              const std::string& text);
  void add_writer(Member& member, const MessageHeader& header, Announcement announcement);
  void add_reader(Member& member, const MessageHeader& header, Announcement announcement);
  void remove_writer(Member& member, std::uint16_t number);
  void remove_reader(Member& member, std::uint16_t number);
  void match(const std::shared_ptr<RemoteWriter>& writer, ReaderCore& reader);
  void match(const Member& member, RemoteReader& remote, WriterCore& writer);
  /// A late reader on its way through a log.
  struct LogWay {
    std::shared_ptr<multicast::LogCursor> cursor;
    LogHistory::Counts passed;  // what lies behind the way
    LogHistory::Counts place;   // what lay before the reader's announcement
    // Messages that it was given; each new message of the topic takes some off.
    std::size_t credit = 0;
  };
  /// A late reader on its way through the stored samples.
  struct CatchingUp {
    ReaderCore* reader;
    Storage::WayPlace way = {};                            // the way in memory,
    std::unique_ptr<LogWay> logged = {};                   // or in the log
    std::set<std::shared_ptr<RemoteWriter>> writers = {};  // writers whose samples it was given
    std::uint64_t order_position = 0;                      // the last sample that it was given
    bool has_all = false;
  };
  /// How many stored samples readers are given in one poll.
  static constexpr std::size_t kSamplesAPoll = 512;
  static constexpr std::size_t kBytesAPoll = std::size_t{256} << 10U;
  struct Budget {
    std::size_t samples = 0;
    std::size_t bytes = 0;
  };
  /// What a handler throws comes out of the poll, when all others have been given theirs.
  template <class Call>
  void keep_failure(Call call) noexcept {
    try {
      call();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void give(CatchingUp& one, const Incoming& in);
  void give_stored(CatchingUp& one, Budget& budget);
  void tell_of_unregister(const Incoming& in);
  std::size_t give_stored(std::size_t& most_messages);
  void end_catching_up(CatchingUp& one);
  [[nodiscard]] bool waits_for_late_readers() const noexcept {
    return storage_ && storage_->is_overtaking();
  }
  [[nodiscard]] bool is_me(const Member& member) const noexcept;

  // These are in topic_log.cpp.
  void note_in_log(const MessageHeader& header, std::size_t payload_bytes, RemoteWriter& writer);
  void begin_log();
  void end_replay();
  void begin_log_way(ReaderCore& reader);
  std::size_t give_logged(std::size_t& most_messages);
  std::size_t give_logged(CatchingUp& one, std::size_t readers);
  std::size_t read_some(CatchingUp& one, std::size_t readers);
  void give(CatchingUp& one, const multicast::Logged& logged);
  void go_on_behind_trim(CatchingUp& one);
  void lose(CatchingUp& one, std::uint64_t up_to);
  void spend_credit(std::size_t messages) noexcept;
  [[nodiscard]] LogHistory::InUse in_use() const noexcept;
  void save_history(Writer& writer, const std::map<const RemoteWriter*, std::uint32_t>& places);
  [[nodiscard]] bool load_history(Reader& reader,
                                  const std::vector<std::shared_ptr<RemoteWriter>>& writers);

  Group& group_;
  std::shared_ptr<PollClock> clock_;
  std::string me_;
  std::string name_;
  TopicQos qos_;
  std::string type_name_;
  std::string type_text_;
  std::set<std::string, std::less<>> names_;  // names of all members that there ever were
  std::map<std::string_view, Member> members_;
  std::uint64_t endpoint_changes_ = 0;
  std::vector<Member*> places_;  // by index in the subgroup
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<RemoteWriter>> replayed_;
  std::unique_ptr<Storage> storage_;         // null: no samples are stored in memory
  std::unique_ptr<LogHistory> log_history_;  // null: samples are not only in the log
  std::uint64_t end_record_ = 0;             // behind the last delivered record, for late readers
  ClientNumbers clients_;
  std::uint64_t position_ = 0;   // the last sample's
  std::uint64_t beginning_ = 0;  // numbers the topic's beginning: made of its first announcement
  std::vector<std::shared_ptr<WriterCore>> writers_;
  std::vector<std::shared_ptr<ReaderCore>> readers_;
  std::vector<CatchingUp> catching_up_;
  Budget budget_;                // left for readers that find their place in this poll
  std::uint64_t announced_ = 0;  // endpoints that this member has announced
  std::deque<std::vector<std::byte>> outbox_;
  std::uint64_t now_ns_ = 0;  // the time of the message at hand
  std::uint64_t due_ns_ = 0;
  std::exception_ptr failure_;  // thrown by a handler, while messages are given to others
  bool ended_ = false;
  bool inconsistent_changed_ = false;
  Carrier* carrier_ = nullptr;  // null: the topic has ended
  std::uint32_t number_ = 0;
};

}  // namespace dunlin::pubsub
