#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/pubsub/qos.hpp>
#include <dunlin/pubsub/status.hpp>
#include <dunlin/pubsub/type_support.hpp>

namespace dunlin::log {
class Disk;
}

/// The untyped entities, for tools and for the typed ones, which are thin views of them
/// (entities.hpp). Handles: copies are the same entity, which goes with its last handle or by
/// close(). One thread, that of the participant.
namespace dunlin::pubsub {

class Carrier;
class ParticipantCore;
class TopicCore;
class WriterCore;
class ReaderCore;
struct ReaderSlot;

struct ParticipantOptions {
  /// Topics of Level::logged: a directory of this member's own, below which each has a log. Its
  /// parent must exist.
  std::string log_directory = {};
  std::shared_ptr<log::Disk> log_disk = nullptr;  // of a simulator; null: that of the machine
  /// Members that a logged topic waits for when it begins: those that may have its log.
  std::vector<std::string> log_founders = {};
  /// Logged topics begin again, and go on, with a quorum of their last members: more than half, or
  /// half with the first one. Only a topic without any log waits for all of log_founders. The same
  /// at all members.
  bool log_quorum = false;
  /// Members whose logs are lost: the others go on without samples that only these logs had.
  std::vector<std::string> log_given_up = {};
  /// So long the destructor of the participant waits at most until all other members of its topics
  /// have the samples that its writers have written, closed writers too; so does Group::leave(). 0:
  /// they do not wait.
  std::uint32_t hand_over_ms = 1'000;
};

/// A topic that the group's members have, as others see it.
struct TopicInfo {
  std::string name;
  std::string type_name;
  TopicQos qos = {};
  std::vector<std::string> members;
};
/// An order that topics share (TopicQos::order). Its members know its topics.
struct OrderInfo {
  std::string name;
  std::size_t ring_bytes = 0;  // TopicQos::ring_bytes of its topics
  std::vector<std::string> members;
};
/// A writer or reader of a topic in which this member is.
struct EndpointInfo {
  std::string member;
  std::uint16_t number = 0;
  bool writes = false;
  bool refused = false;  // it has another type than the topic
  DataWriterQos writer_qos = {};
  DataReaderQos reader_qos = {};
};
struct TopicCounters {
  std::uint64_t received = 0;   // samples, those of this member too
  std::uint64_t bytes = 0;      // of their payloads
  std::uint64_t malformed = 0;  // messages that no member of this release sends
  std::uint64_t repeated = 0;   // samples of clients, passed over as delivered before (RLY-1)
};

/// All topics of one member of a group. Must be destroyed before the group; entities that are left
/// say `ended` from then on.
class DomainParticipant {
 public:
  /// The group must outlive it. Throws Error.
  explicit DomainParticipant(Group& group, ParticipantOptions options = {});
  ~DomainParticipant();
  DomainParticipant(DomainParticipant&& other) noexcept;
  DomainParticipant& operator=(DomainParticipant&& other) noexcept;

  /// All progress is made here, the group's included. Returns a number of things done. Throws what
  /// listeners and the group threw.
  std::size_t poll();
  [[nodiscard]] Waits waits() const;
  void check() const;
  [[nodiscard]] Fabric& fabric() const noexcept;
  [[nodiscard]] Group& group() const noexcept;

  /// The topics of all members, but for those of orders in which this member is not.
  [[nodiscard]] std::vector<TopicInfo> topics() const;
  [[nodiscard]] std::vector<OrderInfo> orders() const;
  /// Another number when topics() or orders() has changed.
  [[nodiscard]] std::uint64_t topic_changes() const noexcept;
  /// Whether this member is in any topic, or on its way out of one: topics go with their last
  /// handle, after the samples of their writers have arrived.
  [[nodiscard]] bool holds_topics() const noexcept;
  /// Asserts the liveliness of all writers with Liveliness::Kind::manual_by_participant.
  void assert_liveliness();

 private:
  friend class AnyTopic;
  friend class TopicOrder;
  std::shared_ptr<ParticipantCore> core_;
};

/// This member in an order (TopicQos::order), also while it has no topic of it: then it knows all
/// its topics (DomainParticipant::topics()). A handle, as those below.
class TopicOrder {
 public:
  TopicOrder() = default;
  /// `ring_bytes`: that of its topics. Does not wait. Throws Error.
  TopicOrder(const DomainParticipant& participant, const OrderName& name,
             std::size_t ring_bytes = TopicQos{}.ring_bytes);
  [[nodiscard]] bool joined() const noexcept;
  /// Why not, if it never will: a sentence.
  [[nodiscard]] std::string why_refused() const;

 private:
  std::shared_ptr<Carrier> carrier_;
  std::shared_ptr<void> hold_;
};

class AnyTopic {
 public:
  AnyTopic() = default;
  /// Topics of one name in one participant are the same topic, and must be given alike. Does not
  /// wait. Throws Error.
  AnyTopic(const DomainParticipant& participant, const std::string& name,
           std::shared_ptr<const TypeSupport> type, TopicQos qos = {});
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const TopicQos& qos() const noexcept;
  /// This member takes part in it: it has the topic's history, and the endpoints of all members.
  [[nodiscard]] bool joined() const noexcept;
  /// Which members' logs a logged topic waits for, and why: a sentence; empty: it does not wait
  /// (ParticipantOptions::log_quorum).
  [[nodiscard]] std::string why_waiting() const;
  /// Why not, if it never will: a sentence.
  [[nodiscard]] const std::string& why_refused() const noexcept;
  [[nodiscard]] InconsistentTopicStatus inconsistent_topic_status() const;
  /// Null: none.
  void on_inconsistent_topic(std::function<void()> handler);
  [[nodiscard]] std::vector<EndpointInfo> endpoints() const;
  /// Grows when endpoints() changes.
  [[nodiscard]] std::uint64_t endpoint_changes() const noexcept;
  /// Whether that member has a reader. It was announced by a member with the topic's state.
  [[nodiscard]] bool has_reader_of(std::string_view member) const noexcept;
  [[nodiscard]] const TopicCounters& counters() const noexcept;
  /// The type of the topic's first endpoint; empty before there is one.
  [[nodiscard]] const std::string& type_text() const noexcept;
  /// How many samples were delivered since the topic began (SampleInfo::position), and a number for
  /// that beginning: it changes if all members had left the topic. 0: it has not begun.
  [[nodiscard]] std::uint64_t position() const noexcept;
  [[nodiscard]] std::uint64_t beginning() const noexcept;
  /// How many things this member has in memory for late readers: samples; of a topic whose samples
  /// stay in its log, places in the log, and writers (PUB-K2).
  [[nodiscard]] std::size_t held_in_memory() const noexcept;
  /// The highest number of that client's samples that was delivered here; 0: none.
  [[nodiscard]] std::uint64_t delivered_of(const ClientId& client) const noexcept;
  /// Called from poll() when delivered_of() a client has come to be this, or has been it already.
  void on_client(std::function<void(const ClientStamp&)> handler);
  explicit operator bool() const noexcept { return core_ != nullptr; }

 private:
  friend class AnyWriter;
  friend class AnyReader;
  std::shared_ptr<TopicCore> core_;
  std::shared_ptr<const TypeSupport> type_;
};

class AnyWriter {
 public:
  AnyWriter() = default;
  AnyWriter(const AnyTopic& topic, const DataWriterQos& qos);
  /// Of a type of its own; as a tool that has come to know it.
  AnyWriter(const AnyTopic& topic, const DataWriterQos& qos,
            std::shared_ptr<const TypeSupport> type);

  [[nodiscard]] WriteResult write(const void* sample) { return put(sample, Put::sample); }
  [[nodiscard]] WriteResult dispose(const void* key_holder) {
    return put(key_holder, Put::dispose);
  }
  [[nodiscard]] WriteResult unregister(const void* key_holder) {
    return put(key_holder, Put::unregister);
  }
  /// For a client. Only one sample of each number is delivered (RLY-1).
  [[nodiscard]] WriteResult write(const void* sample, const ClientStamp& from);
  [[nodiscard]] WriteResult dispose(const void* key_holder, const ClientStamp& from);
  /// Where to build a plain sample in place; null if there is no room now, and for other types. A
  /// later call of this or another writer of this member in the topic, or in any topic of its
  /// order, takes it back: publish() before that, and before the next poll().
  [[nodiscard]] void* loan() noexcept;
  /// Likewise, of a type with encode_head: where to build the elements of its last member. Its
  /// data() is null if there is no room now, for other types, and for more than the ring takes in
  /// place (TopicQos::ring_bytes).
  [[nodiscard]] std::span<std::byte> loan(const void* fields, std::size_t elements);
  /// The sample that was built is written; nothing is, if it was taken back.
  void publish() noexcept;

  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] std::string why_refused() const;
  /// Asserts the liveliness of this writer, or of all, as its policy says.
  [[nodiscard]] WriteResult assert_liveliness();
  [[nodiscard]] const DataWriterQos& qos() const noexcept;
  [[nodiscard]] MatchedStatus publication_matched_status() const noexcept;
  [[nodiscard]] DeadlineMissedStatus offered_deadline_missed_status() const noexcept;
  [[nodiscard]] IncompatibleQosStatus offered_incompatible_qos_status() const;
  [[nodiscard]] LivelinessLostStatus liveliness_lost_status() const noexcept;
  /// Statuses that changed since they were last looked at by this call.
  [[nodiscard]] Status status_changes() noexcept;
  [[nodiscard]] Status peek_changes() const noexcept;
  /// Called from poll() with each status that changed; null: none.
  void on_status(std::function<void(Status)> handler);
  /// Whether all members of the topic have all samples that were written here so far, and will
  /// give them to their readers also if this member ends now (Multicast::acknowledged()).
  [[nodiscard]] bool acknowledged() const;
  /// Polls the participant until then, at most so long; returns whether it is so. Not in a handler.
  /// Throws what poll() throws, and Error on a simulated node, whose World polls it.
  bool wait_for_acknowledgments(std::uint32_t timeout_ms);
  void close();
  explicit operator bool() const noexcept { return core_ != nullptr; }
  /// For handlers of the writer itself, which must not keep it.
  using Weak = std::weak_ptr<WriterCore>;
  explicit AnyWriter(const Weak& weak) : core_(weak.lock()) {}
  [[nodiscard]] Weak weak() const noexcept { return core_; }

 private:
  enum class Put : std::uint8_t { sample, dispose, unregister };
  WriteResult put(const void* sample, Put what);
  std::shared_ptr<WriterCore> core_;
};

class AnyReader {
 public:
  AnyReader() = default;
  /// `filter`: of the samples, only those for which it returns true; null: all.
  using Filter = std::function<bool(const void* sample)>;
  AnyReader(const AnyTopic& topic, const DataReaderQos& qos, Filter filter = nullptr);

  /// Called from poll() with each sample, in place: valid until it returns. Then nothing is cached
  /// here, and read() and take() find nothing. Set it before the next poll().
  using SampleHandler = std::function<void(const void* sample, const SampleInfo& info)>;
  void on_sample(SampleHandler handler);

  struct NextInOrder {
    bool has_sample = false;
    bool waits = false;          // an earlier one may come: it requests stored samples, and is not
    bool is_coming = false;      // ready yet, or is on its way through them
    std::uint64_t position = 0;  // SampleInfo::order_position
    bool is_behind = false;      // the sample at it: the end of an instance
  };
  /// Samples that a reader lends; they stay until it is given back, which its destructor does.
  class Loan {
   public:
    Loan() = default;
    Loan(Loan&& other) noexcept;
    Loan& operator=(Loan&& other) noexcept;
    ~Loan();
    [[nodiscard]] std::size_t size() const noexcept { return infos_.size(); }
    [[nodiscard]] const void* data(std::size_t i) const noexcept;
    [[nodiscard]] const SampleInfo& info(std::size_t i) const noexcept { return infos_[i]; }

   private:
    friend class AnyReader;
    void give_back() noexcept;
    std::shared_ptr<ReaderCore> reader_;
    std::vector<ReaderSlot*> slots_;
    std::vector<SampleInfo> infos_;
  };
  [[nodiscard]] Loan take(const Selection& selection = {});
  [[nodiscard]] Loan read(const Selection& selection = {});
  /// Whether a take() of these would find any.
  [[nodiscard]] bool available(const Selection& selection = {}) const noexcept;
  /// The place of the oldest sample of the cache in the order of several topics (OrderedAccess).
  [[nodiscard]] NextInOrder next_in_order() const noexcept;
  /// A full cache takes as many more, until it has been emptied so far again.
  void make_room() noexcept;
  /// Whether any of these is one for which `query` returns true.
  [[nodiscard]] bool any(const Selection& selection, const Filter& query) const;
  /// The instance of these key members; 0: there is none.
  [[nodiscard]] InstanceHandle lookup_instance(const void* key_holder) const;

  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] std::string why_refused() const;
  [[nodiscard]] const TopicQos& topic_qos() const noexcept;
  [[nodiscard]] const DataReaderQos& qos() const noexcept;
  [[nodiscard]] MatchedStatus subscription_matched_status() const noexcept;
  [[nodiscard]] DeadlineMissedStatus requested_deadline_missed_status() const noexcept;
  [[nodiscard]] IncompatibleQosStatus requested_incompatible_qos_status() const;
  [[nodiscard]] LivelinessChangedStatus liveliness_changed_status() const noexcept;
  [[nodiscard]] SampleRejectedStatus sample_rejected_status() const noexcept;
  [[nodiscard]] SampleLostStatus sample_lost_status() const noexcept;
  [[nodiscard]] Status status_changes() noexcept;
  [[nodiscard]] Status peek_changes() const noexcept;
  void on_status(std::function<void(Status)> handler);
  void close();
  explicit operator bool() const noexcept { return core_ != nullptr; }
  /// For handlers of the reader itself, which must not keep it.
  using Weak = std::weak_ptr<ReaderCore>;
  explicit AnyReader(const Weak& weak) : core_(weak.lock()) {}
  [[nodiscard]] Weak weak() const noexcept { return core_; }

 private:
  Loan lend(const Selection& selection, bool take);
  std::shared_ptr<ReaderCore> core_;
};

}  // namespace dunlin::pubsub
