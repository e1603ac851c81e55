#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <dunlin/pubsub/core.hpp>
#include <dunlin/pubsub/topic_type.hpp>

/// The typed entities: thin views of the untyped ones (core.hpp), in the shapes of the ISO C++ API
/// of DDS. They are handles: copies are the same entity. One thread uses them, that of the
/// participant.
namespace dunlin::pubsub {

template <class T>
class Topic : public AnyTopic {
 public:
  Topic() = default;
  Topic(const DomainParticipant& participant, const std::string& name, const TopicQos& qos = {})
      : AnyTopic(participant, name, type_support<T>(), qos) {}
};

/// Makes writers, with these policies unless a writer has its own.
class Publisher {
 public:
  explicit Publisher(const DomainParticipant&, DataWriterQos qos = {}) : qos_(qos) {}
  [[nodiscard]] const DataWriterQos& default_datawriter_qos() const noexcept { return qos_; }

 private:
  DataWriterQos qos_;
};

/// Makes readers, with these policies unless a reader has its own.
class Subscriber {
 public:
  explicit Subscriber(const DomainParticipant&, DataReaderQos qos = {}) : qos_(qos) {}
  [[nodiscard]] const DataReaderQos& default_datareader_qos() const noexcept { return qos_; }

 private:
  DataReaderQos qos_;
};

template <class T>
class DataWriter;
template <class T>
class DataReader;

/// The handlers of a writer: override those that you need. The participant's poll() calls them. A
/// listener must outlive the writer, or be taken off it.
template <class T>
class DataWriterListener {
 public:
  virtual ~DataWriterListener() = default;
  virtual void on_offered_deadline_missed(DataWriter<T>&, const DeadlineMissedStatus&) {}
  virtual void on_offered_incompatible_qos(DataWriter<T>&, const IncompatibleQosStatus&) {}
  virtual void on_liveliness_lost(DataWriter<T>&, const LivelinessLostStatus&) {}
  virtual void on_publication_matched(DataWriter<T>&, const MatchedStatus&) {}
};

template <class T>
class DataReaderListener {
 public:
  virtual ~DataReaderListener() = default;
  virtual void on_data_available(DataReader<T>&) {}
  virtual void on_requested_deadline_missed(DataReader<T>&, const DeadlineMissedStatus&) {}
  virtual void on_requested_incompatible_qos(DataReader<T>&, const IncompatibleQosStatus&) {}
  virtual void on_liveliness_changed(DataReader<T>&, const LivelinessChangedStatus&) {}
  virtual void on_subscription_matched(DataReader<T>&, const MatchedStatus&) {}
  virtual void on_sample_rejected(DataReader<T>&, const SampleRejectedStatus&) {}
  virtual void on_sample_lost(DataReader<T>&, const SampleLostStatus&) {}
};

template <class T>
class DataWriter {
 public:
  DataWriter() = default;
  DataWriter(const Publisher& publisher, const Topic<T>& topic)
      : DataWriter(publisher, topic, publisher.default_datawriter_qos()) {}
  DataWriter(const Publisher&, const Topic<T>& topic, const DataWriterQos& qos)
      : writer_(topic, qos) {}

  [[nodiscard]] WriteResult write(const T& sample) { return writer_.write(&sample); }
  /// Says that the instance with these key members is gone.
  [[nodiscard]] WriteResult dispose_instance(const T& key_holder) {
    return writer_.dispose(&key_holder);
  }
  /// Says that this writer writes that instance no more.
  [[nodiscard]] WriteResult unregister_instance(const T& key_holder) {
    return writer_.unregister(&key_holder);
  }
  /// Memory in the ring in which to build a sample; null if there is no room now. The caller must
  /// write all members: the memory is not cleared. publish() before another call of a writer of the
  /// topic, or of a topic of its order, and before the next poll().
  [[nodiscard]] T* loan() noexcept {
    static_assert(detail::is_plain<T>(),
                  "dunlin: only plain types are built in place; write() the others.");
    return static_cast<T*>(writer_.loan());
  }
  /// Memory in the ring in which to build the last member of a final struct, a sequence of numbers
  /// of at most 4 bytes with so many elements. The other members are those of `fields`. The
  /// result's data() is null if there is no room now, and if the sample is too large for its ring:
  /// write() such samples. publish() as after the other loan().
  [[nodiscard]] auto loan(const T& fields, std::size_t elements) {
    static_assert(detail::ends_with_sequence<T>(),
                  "dunlin: only a sequence of numbers of at most 4 bytes, at the end of a final "
                  "struct, is built in place; write() the others.");
    using Element = typename detail::LastElement<T>::type;
    const std::span<std::byte> room = writer_.loan(&fields, elements);
    return std::span(reinterpret_cast<Element*>(room.data()), room.size() / sizeof(Element));
  }
  void publish() noexcept { writer_.publish(); }
  /// Sets the handler that poll() calls when there is room for what write() or loan() refused last
  /// (AnyWriter::on_room()). It must not keep a handle of this writer.
  void on_room(std::function<void()> handler) { writer_.on_room(std::move(handler)); }
  /// Waits as AnyWriter::wait_for_acknowledgments() does.
  bool wait_for_acknowledgments(std::uint32_t timeout_ms) {
    return writer_.wait_for_acknowledgments(timeout_ms);
  }

  void listener(DataWriterListener<T>* listener, Status mask = Status::all) {
    if (listener == nullptr) return writer_.on_status(nullptr);
    // The handler must not keep its own writer alive.
    writer_.on_status([this_writer = weak(), listener, mask](Status now) {
      DataWriter writer(this_writer);
      if (!writer) return;
      const auto has_changed = [&](Status one) { return has(mask, one) && has(now, one); };
      if (has_changed(Status::publication_matched))
        listener->on_publication_matched(writer, writer->publication_matched_status());
      if (has_changed(Status::offered_incompatible_qos))
        listener->on_offered_incompatible_qos(writer, writer->offered_incompatible_qos_status());
      if (has_changed(Status::offered_deadline_missed))
        listener->on_offered_deadline_missed(writer, writer->offered_deadline_missed_status());
      if (has_changed(Status::liveliness_lost))
        listener->on_liveliness_lost(writer, writer->liveliness_lost_status());
    });
  }

  /// Gives access to the untyped writer: statuses, liveliness, close().
  AnyWriter* operator->() noexcept { return &writer_; }
  const AnyWriter* operator->() const noexcept { return &writer_; }
  explicit operator bool() const noexcept { return static_cast<bool>(writer_); }

 private:
  using Weak = AnyWriter::Weak;
  explicit DataWriter(const Weak& weak) : writer_(weak) {}
  [[nodiscard]] Weak weak() const { return writer_.weak(); }
  AnyWriter writer_;
};

/// A sample that a reader lends. Use data() only if info().valid(); otherwise only its key members
/// are there.
template <class T>
struct Sample {
  [[nodiscard]] const T& data() const noexcept { return *data_; }
  [[nodiscard]] const SampleInfo& info() const noexcept { return *info_; }
  const T* data_;
  const SampleInfo* info_;
};

/// The samples of a take() or read(), lent until this object is destroyed.
template <class T>
class LoanedSamples {
 public:
  LoanedSamples() = default;
  explicit LoanedSamples(AnyReader::Loan loan) : loan_(std::move(loan)) {}
  [[nodiscard]] std::size_t length() const noexcept { return loan_.size(); }
  [[nodiscard]] Sample<T> operator[](std::size_t i) const noexcept {
    return {static_cast<const T*>(loan_.data(i)), &loan_.info(i)};
  }

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Sample<T>;
    Iterator() = default;
    Iterator(const LoanedSamples* of, std::size_t at) : of_(of), at_(at) {}
    Sample<T> operator*() const noexcept { return (*of_)[at_]; }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    Iterator operator++(int) noexcept { return {of_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const LoanedSamples* of_ = nullptr;
    std::size_t at_ = 0;
  };
  [[nodiscard]] Iterator begin() const noexcept { return {this, 0}; }
  [[nodiscard]] Iterator end() const noexcept { return {this, length()}; }

 private:
  AnyReader::Loan loan_;
};

template <class T>
class DataReader {
 public:
  using Filter = std::function<bool(const T&)>;

  DataReader() = default;
  DataReader(const Subscriber& subscriber, const Topic<T>& topic)
      : DataReader(subscriber, topic, subscriber.default_datareader_qos()) {}
  /// `filter`: the reader is given only samples for which it returns true.
  DataReader(const Subscriber&, const Topic<T>& topic, const DataReaderQos& qos,
             Filter filter = nullptr)
      : reader_(topic, qos, untyped(std::move(filter))) {}

  [[nodiscard]] LoanedSamples<T> take(const Selection& selection = {}) {
    return LoanedSamples<T>(reader_.take(selection));
  }
  [[nodiscard]] LoanedSamples<T> read(const Selection& selection = {}) {
    return LoanedSamples<T>(reader_.read(selection));
  }
  [[nodiscard]] InstanceHandle lookup_instance(const T& key_holder) const {
    return reader_.lookup_instance(&key_holder);
  }
  /// Sets the handler that poll() calls with each sample in the ring, which costs no copy; see
  /// AnyReader::on_sample().
  void on_sample(std::function<void(const T&, const SampleInfo&)> handler) {
    if (!handler) return reader_.on_sample(nullptr);
    reader_.on_sample([handler = std::move(handler)](const void* sample, const SampleInfo& info) {
      handler(*static_cast<const T*>(sample), info);
    });
  }

  void listener(DataReaderListener<T>* listener, Status mask = Status::all) {
    if (listener == nullptr) return reader_.on_status(nullptr);
    reader_.on_status([this_reader = weak(), listener, mask](Status now) {
      DataReader reader(this_reader);
      if (!reader) return;
      const auto has_changed = [&](Status one) { return has(mask, one) && has(now, one); };
      if (has_changed(Status::subscription_matched))
        listener->on_subscription_matched(reader, reader->subscription_matched_status());
      if (has_changed(Status::requested_incompatible_qos))
        listener->on_requested_incompatible_qos(reader,
                                                reader->requested_incompatible_qos_status());
      if (has_changed(Status::liveliness_changed))
        listener->on_liveliness_changed(reader, reader->liveliness_changed_status());
      if (has_changed(Status::requested_deadline_missed))
        listener->on_requested_deadline_missed(reader, reader->requested_deadline_missed_status());
      if (has_changed(Status::sample_rejected))
        listener->on_sample_rejected(reader, reader->sample_rejected_status());
      if (has_changed(Status::sample_lost))
        listener->on_sample_lost(reader, reader->sample_lost_status());
      if (has_changed(Status::data_available)) listener->on_data_available(reader);
    });
  }

  /// Gives access to the untyped reader: statuses, close().
  AnyReader* operator->() noexcept { return &reader_; }
  const AnyReader* operator->() const noexcept { return &reader_; }
  explicit operator bool() const noexcept { return static_cast<bool>(reader_); }

 private:
  using Weak = AnyReader::Weak;
  explicit DataReader(const Weak& weak) : reader_(weak) {}
  [[nodiscard]] Weak weak() const { return reader_.weak(); }
  static AnyReader::Filter untyped(Filter filter) {
    if (!filter) return nullptr;
    return [filter = std::move(filter)](const void* sample) {
      return filter(*static_cast<const T*>(sample));
    };
  }
  AnyReader reader_;
};

}  // namespace dunlin::pubsub
