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

/// The untyped entities, for tools and for the typed entities, which are thin views of them
/// (entities.hpp). They are handles: copies are the same entity, which ends with its last handle or
/// by close(). One thread uses them, that of the participant.
namespace dunlin::pubsub {

class Carrier;
class ParticipantCore;
class TopicCore;
class WriterCore;
class ReaderCore;
struct ReaderSlot;

struct ParticipantOptions {
  /// For topics of Level::logged: a directory of this member alone, in which each topic has a log.
  /// Its parent must exist.
  std::string log_directory = {};
  std::shared_ptr<log::Disk> log_disk = nullptr;  // a simulated disk; null: the machine's
  /// Members for which a logged topic waits when it begins: those that may have its log.
  std::vector<std::string> log_founders = {};
  /// Logged topics begin again, and go on, with a quorum of their last members: more than half, or
  /// half with the first one. Only a topic without any log waits for all of log_founders. All
  /// members give the same value.
  bool log_quorum = false;
  /// Members whose logs are lost: the others go on without samples that only these logs had.
  std::vector<std::string> log_given_up = {};
  /// How long the destructor of the participant, and Group::leave(), wait at most until all other
  /// members of its topics have the samples that its writers have written, closed writers included.
  /// 0: they do not wait.
  std::uint32_t hand_over_ms = 1'000;
  /// How long this member stays a sender of a topic in which it has no writer any more (PUB-W1). A
  /// longer time saves changes of the topic where writers and readers come and go.
  std::uint32_t sender_linger_ms = 100;
};

/// A topic of the group's members, as other members see it.
struct TopicInfo {
  std::string name;
  std::string type_name;
  TopicQos qos = {};
  std::vector<std::string> members;
};
/// An order that topics share (TopicQos::order). Its members know its topics.
struct OrderInfo {
  std::string name;
  std::size_t ring_bytes = 0;  // TopicQos::ring_bytes of the order's topics
  std::vector<std::string> members;
};
/// A writer or reader of a topic in which this member is.
struct EndpointInfo {
  std::string member;
  std::uint16_t number = 0;
  bool writes = false;
  bool refused = false;  // its type differs from the topic's
  DataWriterQos writer_qos = {};
  DataReaderQos reader_qos = {};
};
struct TopicCounters {
  std::uint64_t received = 0;   // samples, this member's own included
  std::uint64_t bytes = 0;      // bytes of the payloads of these
  std::uint64_t malformed = 0;  // messages that no member of this release sends
  std::uint64_t repeated = 0;   // clients' samples that were dropped as delivered before (RLY-1)
};

/// All topics of one member of a group. Must be destroyed before the group; calls on entities that
/// still exist then return `ended`.
class DomainParticipant {
 public:
  /// The group must outlive the participant. Throws Error.
  explicit DomainParticipant(Group& group, ParticipantOptions options = {});
  ~DomainParticipant();
  DomainParticipant(DomainParticipant&& other) noexcept;
  DomainParticipant& operator=(DomainParticipant&& other) noexcept;

  /// Makes all progress, the group's included. Returns how many things were done. Throws what
  /// listeners and the group threw.
  std::size_t poll();
  [[nodiscard]] Waits waits() const;
  void check() const;
  [[nodiscard]] Fabric& fabric() const noexcept;
  [[nodiscard]] Group& group() const noexcept;

  /// The topics of all members, except those in an order (TopicQos::order) in which this member is
  /// not.
  [[nodiscard]] std::vector<TopicInfo> topics() const;
  [[nodiscard]] std::vector<OrderInfo> orders() const;
  /// A number that differs once topics() or orders() has changed.
  [[nodiscard]] std::uint64_t topic_changes() const noexcept;
  /// Whether this member is in any topic, or on its way out of one: it leaves a topic with the last
  /// handle, after the samples of its writers have arrived.
  [[nodiscard]] bool holds_topics() const noexcept;
  /// Asserts the liveliness of all writers with Liveliness::Kind::manual_by_participant.
  void assert_liveliness();

 private:
  friend class AnyTopic;
  friend class TopicOrder;
  std::shared_ptr<ParticipantCore> core_;
};

/// This member's part in an order (TopicQos::order), also while it has no topic of it: through that
/// it knows all topics of the order (DomainParticipant::topics()). A handle, as the entities are.
class TopicOrder {
 public:
  TopicOrder() = default;
  /// `ring_bytes`: the value of the order's topics. Does not wait. Throws Error.
  TopicOrder(const DomainParticipant& participant, const OrderName& name,
             std::size_t ring_bytes = TopicQos{}.ring_bytes);
  [[nodiscard]] bool joined() const noexcept;
  /// A sentence that says why this member can never be in the order; empty otherwise.
  [[nodiscard]] std::string why_refused() const;

 private:
  std::shared_ptr<Carrier> carrier_;
  std::shared_ptr<void> hold_;
};

class AnyTopic {
 public:
  AnyTopic() = default;
  /// Topics of one name in one participant are the same topic, and must be given equal type and
  /// policies. Does not wait. Throws Error.
  AnyTopic(const DomainParticipant& participant, const std::string& name,
           std::shared_ptr<const TypeSupport> type, TopicQos qos = {});
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const TopicQos& qos() const noexcept;
  /// Whether this member is in the topic: it has the topic's history, and the endpoints of all
  /// members.
  [[nodiscard]] bool joined() const noexcept;
  /// A sentence that says for which members' logs a logged topic waits, and why; empty: it does not
  /// wait (ParticipantOptions::log_quorum).
  [[nodiscard]] std::string why_waiting() const;
  /// A sentence that says why this member can never be in the topic; empty otherwise.
  [[nodiscard]] const std::string& why_refused() const noexcept;
  [[nodiscard]] InconsistentTopicStatus inconsistent_topic_status() const;
  /// Sets the handler for the topic's status inconsistent_topic; null: none.
  void on_inconsistent_topic(std::function<void()> handler);
  [[nodiscard]] std::vector<EndpointInfo> endpoints() const;
  /// A number that grows when endpoints() changes.
  [[nodiscard]] std::uint64_t endpoint_changes() const noexcept;
  /// Whether that member has a reader of the topic that a member with the topic's state has
  /// announced.
  [[nodiscard]] bool has_reader_of(std::string_view member) const noexcept;
  [[nodiscard]] const TopicCounters& counters() const noexcept;
  /// The type of the topic's first endpoint; empty before there is one.
  [[nodiscard]] const std::string& type_text() const noexcept;
  /// How many samples were delivered since the topic began (SampleInfo::position), and a number for
  /// that beginning, which differs once all members had left the topic. 0: the topic has not begun.
  [[nodiscard]] std::uint64_t position() const noexcept;
  [[nodiscard]] std::uint64_t beginning() const noexcept;
  /// How many things this member keeps in memory for late readers: samples; for a topic whose
  /// samples stay in its log, places in the log, and writers (PUB-K2).
  [[nodiscard]] std::size_t held_in_memory() const noexcept;
  /// The highest number of that client's samples that were delivered here; 0: no sample was.
  [[nodiscard]] std::uint64_t delivered_of(const ClientId& client) const noexcept;
  /// Sets the handler that poll() calls when delivered_of() a client reaches this number, or has
  /// reached it already.
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
  /// A writer with a type of its own, such as a tool has that has come to know the topic's type.
  AnyWriter(const AnyTopic& topic, const DataWriterQos& qos,
            std::shared_ptr<const TypeSupport> type);

  [[nodiscard]] WriteResult write(const void* sample) { return put(sample, Put::sample); }
  [[nodiscard]] WriteResult dispose(const void* key_holder) {
    return put(key_holder, Put::dispose);
  }
  [[nodiscard]] WriteResult unregister(const void* key_holder) {
    return put(key_holder, Put::unregister);
  }
  /// Writes a sample for a client. Of several samples with one number, only one is delivered
  /// (RLY-1).
  [[nodiscard]] WriteResult write(const void* sample, const ClientStamp& from);
  [[nodiscard]] WriteResult dispose(const void* key_holder, const ClientStamp& from);
  /// Memory in which to build a plain sample in place; null if there is no room now, and for other
  /// types. A later call of this or another writer of this member in the topic, or in any topic of
  /// its order, takes the memory back: publish() before that, and before the next poll().
  [[nodiscard]] void* loan() noexcept;
  /// Memory in which to build the elements of the last member, for a type with encode_head;
  /// `fields` has the other members. Its data() is null if there is no room now, for other types,
  /// and for more than the ring takes in place (TopicQos::ring_bytes). publish() as after the other
  /// loan().
  [[nodiscard]] std::span<std::byte> loan(const void* fields, std::size_t elements);
  /// Writes the sample that was built; writes nothing if the memory was taken back.
  void publish() noexcept;

  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] std::string why_refused() const;
  /// Asserts the liveliness of this writer, or of all writers of the participant, as its policy
  /// says.
  [[nodiscard]] WriteResult assert_liveliness();
  [[nodiscard]] const DataWriterQos& qos() const noexcept;
  [[nodiscard]] MatchedStatus publication_matched_status() const noexcept;
  [[nodiscard]] DeadlineMissedStatus offered_deadline_missed_status() const noexcept;
  [[nodiscard]] IncompatibleQosStatus offered_incompatible_qos_status() const;
  [[nodiscard]] LivelinessLostStatus liveliness_lost_status() const noexcept;
  /// The statuses that have changed since the last call of status_changes().
  [[nodiscard]] Status status_changes() noexcept;
  [[nodiscard]] Status peek_changes() const noexcept;
  /// Sets the handler that poll() calls with each status that has changed; null: none.
  void on_status(std::function<void(Status)> handler);
  /// Sets the handler that poll() calls when there is room for what write() or loan() refused last,
  /// with `no_room` or `not_ready`: once after each refusal that polling can end. It may write.
  /// Null: none.
  void on_room(std::function<void()> handler);
  /// Whether all members of the topic have all samples that were written here so far, and will give
  /// them to their readers even if this member ends now (Multicast::acknowledged()).
  [[nodiscard]] bool acknowledged() const;
  /// Polls the participant until acknowledged(), at most so long; returns whether it is. Not for
  /// handlers. Throws what poll() throws, and Error on a simulated node, whose World polls it.
  bool wait_for_acknowledgments(std::uint32_t timeout_ms);
  void close();
  explicit operator bool() const noexcept { return core_ != nullptr; }
  /// A weak reference for handlers of the writer itself, which must not keep the writer alive.
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
  /// `filter`: the reader is given only samples for which it returns true; null: all.
  using Filter = std::function<bool(const void* sample)>;
  AnyReader(const AnyTopic& topic, const DataReaderQos& qos, Filter filter = nullptr);

  /// Sets the handler that poll() calls with each sample in the ring, where it is valid until the
  /// handler returns; a poll() by the handler takes nothing of this topic. Then the reader caches
  /// no samples, and read() and take() find none. Set it before the next poll().
  using SampleHandler = std::function<void(const void* sample, const SampleInfo& info)>;
  void on_sample(SampleHandler handler);

  struct NextInOrder {
    bool has_sample = false;
    /// True while the reader may still get stored samples that are older than this one: it requests
    /// stored samples, and is not ready yet.
    bool waits = false;
    /// True while the reader is on its way through the stored samples.
    bool is_coming = false;
    std::uint64_t position = 0;  // SampleInfo::order_position
    bool is_behind = false;      // the sample at `position` is the end of an instance
  };
  /// Samples that a reader lends; they stay until the loan is given back, by its destructor.
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
  /// Whether take() with this selection would find any sample.
  [[nodiscard]] bool available(const Selection& selection = {}) const noexcept;
  /// The position of the cache's oldest sample in the order of several topics (OrderedAccess).
  [[nodiscard]] NextInOrder next_in_order() const noexcept;
  /// Lets a full cache take as many samples more, until it has been emptied to its limit again.
  void make_room() noexcept;
  /// Whether `query` returns true for any sample in the selection.
  [[nodiscard]] bool any(const Selection& selection, const Filter& query) const;
  /// The instance with these key members; 0: there is none.
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
  /// A weak reference for handlers of the reader itself, which must not keep the reader alive.
  using Weak = std::weak_ptr<ReaderCore>;
  explicit AnyReader(const Weak& weak) : core_(weak.lock()) {}
  [[nodiscard]] Weak weak() const noexcept { return core_; }

 private:
  Loan lend(const Selection& selection, bool take);
  std::shared_ptr<ReaderCore> core_;
};

}  // namespace dunlin::pubsub
