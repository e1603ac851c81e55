// What a sample costs with Fast DDS over its shared memory, or over UDP: the neighbour that `dunlin
// bench topic` compares with. Two processes of one DDS domain, each started as
//     dunlin-fast-dds sub|pub|ping|pong DOMAIN BYTES SECONDS [OWN_ADDRESS OTHER_ADDRESS]
// Without addresses, they use shared memory and no network.
// `sub` prints "rate N": reliable samples in the last whole second. `ping` prints "latency NS":
// half a round trip, the median.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kHeaderBytes = 4;  // of a serialized payload

/// So many bytes, of which the first eight are a number.
class BytesType : public dds::TopicDataType {
 public:
  explicit BytesType(std::uint32_t bytes) : bytes_(bytes) {
    setName("Bytes");
    m_typeSize = bytes + kHeaderBytes;
    m_isGetKeyDefined = false;
  }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    payload->encapsulation = CDR_LE;
    const std::array<unsigned char, kHeaderBytes> header{0, 1, 0, 0};
    std::memcpy(payload->data, header.data(), header.size());
    std::memcpy(payload->data + kHeaderBytes, data, bytes_);
    payload->length = bytes_ + kHeaderBytes;
    return true;
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    if (payload->length < bytes_ + kHeaderBytes) return false;
    std::memcpy(data, payload->data + kHeaderBytes, bytes_);
    return true;
  }
  std::function<std::uint32_t()> getSerializedSizeProvider(void*) override {
    return [this] { return bytes_ + kHeaderBytes; };
  }
  void* createData() override { return new unsigned char[bytes_]; }
  void deleteData(void* data) override { delete[] static_cast<unsigned char*>(data); }
  bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
  bool is_bounded() const override { return true; }
  bool is_plain() const override { return true; }

 private:
  std::uint32_t bytes_;
};

/// Of UDP; none for shared memory.
struct Addresses {
  std::string own;
  std::string other;
};

/// A participant with one transport.
class Participant {
 public:
  Participant(std::uint32_t domain, std::uint32_t bytes, const Addresses& at)
      : type_(new BytesType(bytes)) {
    dds::DomainParticipantQos qos;
    use_transport(qos, at);
    auto* const factory = dds::DomainParticipantFactory::get_instance();
    participant_ = factory->create_participant(domain, qos);
    if (participant_ == nullptr || !type_.register_type(participant_)) {
      std::fputs("there is no participant\n", stderr);
      std::exit(1);
    }
  }
  ~Participant() {
    end();
    dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// No listener is called any more.
  void end() { participant_->delete_contained_entities(); }

  dds::DataWriter* writer(const std::string& topic) {
    dds::DataWriterQos qos;
    qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = {10, 0};
    qos.history().kind = dds::KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_samples = kHistory;
    qos.resource_limits().max_samples_per_instance = kHistory;
    qos.resource_limits().max_instances = 1;
    return participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT)
        ->create_datawriter(topic_of(topic), qos);
  }
  dds::DataReader* reader(const std::string& topic, dds::DataReaderListener& listener) {
    dds::DataReaderQos qos;
    qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
    qos.history().kind = dds::KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_samples = kHistory;
    qos.resource_limits().max_samples_per_instance = kHistory;
    qos.resource_limits().max_instances = 1;
    return participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT)
        ->create_datareader(topic_of(topic), qos, &listener);
  }

 private:
  static void use_transport(dds::DomainParticipantQos& qos, const Addresses& at) {
    namespace transport = eprosima::fastdds::rtps;
    qos.transport().use_builtin_transports = false;
    if (at.own.empty()) {
      qos.transport().user_transports.push_back(
          std::make_shared<transport::SharedMemTransportDescriptor>());
      return;
    }
    const auto udp = std::make_shared<transport::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.push_back(at.own);
    qos.transport().user_transports.push_back(udp);
    rtps::Locator_t other;  // without a port: those of the domain's first participants
    rtps::IPLocator::setIPv4(other, at.other);
    qos.wire_protocol().builtin.initialPeersList.push_back(other);
  }
  dds::Topic* topic_of(const std::string& name) {
    return participant_->create_topic(name, type_.get_type_name(), dds::TOPIC_QOS_DEFAULT);
  }
  static constexpr std::int32_t kHistory = 1000;
  dds::TypeSupport type_;
  dds::DomainParticipant* participant_ = nullptr;
};

/// Calls `handle` with each sample, in a thread of the library.
class Listener : public dds::DataReaderListener {
 public:
  Listener(std::uint32_t bytes, std::function<void(const unsigned char*)> handle)
      : buffer_(bytes), handle_(std::move(handle)) {}
  void on_data_available(dds::DataReader* reader) override {
    dds::SampleInfo info;
    while (reader->take_next_sample(buffer_.data(), &info) == ReturnCode_t::RETCODE_OK)
      if (info.valid_data) handle_(buffer_.data());
  }

 private:
  std::vector<unsigned char> buffer_;
  std::function<void(const unsigned char*)> handle_;
};

bool matched(const dds::DataWriter* writer, Clock::time_point end) {
  dds::PublicationMatchedStatus status;
  while (writer->get_publication_matched_status(status), status.current_count == 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void subscribe(Participant& participant, std::uint32_t bytes, Clock::time_point end) {
  std::atomic<std::uint64_t> count{0};
  Listener listener(bytes, [&](const unsigned char*) { ++count; });
  participant.reader("data", listener);
  std::this_thread::sleep_until(end - std::chrono::seconds(1));
  const std::uint64_t before = count;
  std::this_thread::sleep_until(end);
  const std::uint64_t after = count;
  participant.end();
  // On a busy machine none may come in that second: that is no rate.
  if (after > before) std::printf("rate %llu\n", static_cast<unsigned long long>(after - before));
}

void publish(Participant& participant, std::uint32_t bytes, Clock::time_point end) {
  dds::DataWriter* const writer = participant.writer("data");
  std::vector<unsigned char> sample(bytes);
  if (!matched(writer, end)) return;
  while (Clock::now() < end) writer->write(sample.data());
}

void ping(Participant& participant, std::uint32_t bytes, Clock::time_point end) {
  std::atomic<std::uint64_t> answers{0};
  Listener listener(bytes, [&](const unsigned char*) { ++answers; });
  participant.reader("pong", listener);
  dds::DataWriter* const writer = participant.writer("ping");
  std::vector<unsigned char> sample(bytes);
  std::vector<double> times;
  if (!matched(writer, end)) return participant.end();
  // The answers' writer may not know our reader yet: an answer that is missing is asked for again.
  while (Clock::now() < end) {
    const std::uint64_t before = answers;
    const Clock::time_point start = Clock::now();
    writer->write(sample.data());
    while (answers == before && Clock::now() - start < std::chrono::milliseconds(100)) {
    }
    if (answers != before)
      times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / 2);
  }
  participant.end();
  if (times.empty()) return;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  std::printf("latency %.0f\n", times[times.size() / 2]);
}

void pong(Participant& participant, std::uint32_t bytes, Clock::time_point end) {
  dds::DataWriter* const writer = participant.writer("pong");
  Listener listener(bytes, [&](const unsigned char* sample) {
    writer->write(const_cast<unsigned char*>(sample));
  });
  participant.reader("ping", listener);
  std::this_thread::sleep_until(end);
  participant.end();
}

}  // namespace

int main(int argc, char** argv) {
  const bool well = argc == 5 || argc == 7;
  const std::string role = well ? argv[1] : "";
  const auto domain = static_cast<std::uint32_t>(well ? std::atoi(argv[2]) : 0);
  const auto bytes = static_cast<std::uint32_t>(well ? std::atoi(argv[3]) : 0);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(well ? std::atoi(argv[4]) : 0);
  if (bytes < 8 || (role != "sub" && role != "pub" && role != "ping" && role != "pong")) {
    std::fputs(
        "usage: dunlin-fast-dds sub|pub|ping|pong DOMAIN BYTES SECONDS [OWN_ADDRESS "
        "OTHER_ADDRESS]\n",
        stderr);
    return 2;
  }
  const Addresses at = argc == 7 ? Addresses{.own = argv[5], .other = argv[6]} : Addresses{};
  Participant participant(domain, bytes, at);
  if (role == "sub") subscribe(participant, bytes, end);
  if (role == "pub") publish(participant, bytes, end);
  if (role == "ping") ping(participant, bytes, end);
  if (role == "pong") pong(participant, bytes, end);
  return 0;
}
