// A DDS application made with Fast DDS: a writer and a reader of one topic of positions.
//
//     dunlin-fast-dds-peer DOMAIN TOPIC [keep_all]
//
// Each line of standard input is a command: `write SHIP NUMBER`, `dispose SHIP`, `writer`, `read`;
// `matched N`, which is answered when each of these has an equal in N other participants; `end`.
// What the reader takes is printed: `sample SHIP NUMBER`, `disposed SHIP`, `no_writers SHIP`.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <fastcdr/Cdr.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <poll.h>
#include <unistd.h>

namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

struct Position {
  std::uint32_t ship = 0;
  std::uint32_t number = 0;
};

/// As IDL: module fleet { @final struct Position { @key uint32 ship; uint32 number; }; };
class PositionType : public dds::TopicDataType {
 public:
  PositionType() {
    setName("fleet::Position");
    m_typeSize = kBytes;
    m_isGetKeyDefined = true;
  }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    const auto& position = *static_cast<const Position*>(data);
    FastBuffer buffer(reinterpret_cast<char*>(payload->data), payload->max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    payload->encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    cdr.serialize_encapsulation();
    cdr << position.ship << position.number;
    payload->length = static_cast<std::uint32_t>(cdr.getSerializedDataLength());
    return true;
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    auto& position = *static_cast<Position*>(data);
    FastBuffer buffer(reinterpret_cast<char*>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> position.ship;
      if (payload->length >= kBytes) cdr >> position.number;
    } catch (const eprosima::fastcdr::exception::Exception&) {
      return false;
    }
    return true;
  }
  std::function<std::uint32_t()> getSerializedSizeProvider(void*) override {
    return [] { return kBytes; };
  }
  void* createData() override { return new Position; }
  void deleteData(void* data) override { delete static_cast<Position*>(data); }
  /// The key itself, big-endian: it fits.
  bool getKey(void* data, rtps::InstanceHandle_t* handle, bool) override {
    const std::uint32_t ship = static_cast<const Position*>(data)->ship;
    for (unsigned i = 0; i < 16; ++i) handle->value[i] = 0;
    for (unsigned i = 0; i < 4; ++i)
      handle->value[i] = static_cast<unsigned char>(ship >> (24 - 8 * i));
    return true;
  }
  static std::uint32_t ship_of(const rtps::InstanceHandle_t& handle) {
    std::uint32_t ship = 0;
    for (unsigned i = 0; i < 4; ++i) ship = ship << 8 | handle.value[i];
    return ship;
  }

 private:
  static constexpr std::uint32_t kBytes = 12;  // with the header
};

class Peer {
 public:
  Peer(std::uint32_t domain, std::string topic, bool keeps_all)
      : topic_name_(std::move(topic)), keeps_all_(keeps_all), type_(new PositionType) {
    dds::DomainParticipantQos qos;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.emplace_back("127.0.0.1");
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    // Other participants of the domain on this host, at their well-known ports.
    for (std::uint32_t number = 0; number < kMostParticipants; ++number) {
      rtps::Locator_t peer;
      rtps::IPLocator::setIPv4(peer, "127.0.0.1");
      peer.port = 7'400 + 250 * domain + 10 + 2 * number;
      qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    }
    participant_ = dds::DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    if (participant_ == nullptr || !type_.register_type(participant_)) {
      std::cerr << "there is no participant" << std::endl;
      std::exit(1);
    }
    topic_ = participant_->create_topic(topic_name_, type_.get_type_name(), dds::TOPIC_QOS_DEFAULT);
  }
  ~Peer() {
    participant_->delete_contained_entities();
    dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void make_writer() {
    if (writer_ != nullptr) return;
    dds::DataWriterQos qos;
    qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
    qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
    if (keeps_all_) qos.history().kind = dds::KEEP_ALL_HISTORY_QOS;
    writer_ =
        participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic_, qos);
  }
  void make_reader() {
    dds::DataReaderQos qos;
    qos.reliability().kind = dds::RELIABLE_RELIABILITY_QOS;
    qos.durability().kind = dds::TRANSIENT_LOCAL_DURABILITY_QOS;
    if (keeps_all_) qos.history().kind = dds::KEEP_ALL_HISTORY_QOS;
    reader_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT)
                  ->create_datareader(topic_, qos);
  }
  void write(Position position) {
    make_writer();
    writer_->write(&position);
  }
  void dispose(Position position) {
    make_writer();
    writer_->dispose(&position, writer_->lookup_instance(&position));
  }
  [[nodiscard]] bool matched(int others) const {
    dds::PublicationMatchedStatus of_writer;
    dds::SubscriptionMatchedStatus of_reader;
    if (writer_ != nullptr) writer_->get_publication_matched_status(of_writer);
    if (reader_ != nullptr) reader_->get_subscription_matched_status(of_reader);
    return (writer_ == nullptr || of_writer.current_count >= others) &&
           (reader_ == nullptr || of_reader.current_count >= others);
  }
  void take() {
    Position position;
    dds::SampleInfo info;
    while (reader_ != nullptr &&
           reader_->take_next_sample(&position, &info) == ReturnCode_t::RETCODE_OK) {
      if (info.valid_data) {
        std::cout << "sample " << position.ship << ' ' << position.number << std::endl;
        continue;
      }
      std::cout << (info.instance_state == dds::NOT_ALIVE_DISPOSED_INSTANCE_STATE ? "disposed "
                                                                                  : "no_writers ")
                << PositionType::ship_of(info.instance_handle) << std::endl;
    }
  }

 private:
  static constexpr std::uint32_t kMostParticipants = 10;
  std::string topic_name_;
  bool keeps_all_;
  dds::TypeSupport type_;
  dds::DomainParticipant* participant_ = nullptr;
  dds::Topic* topic_ = nullptr;
  dds::DataWriter* writer_ = nullptr;
  dds::DataReader* reader_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: dunlin-fast-dds-peer DOMAIN TOPIC [keep_all]" << std::endl;
    return 2;
  }
  Peer peer(static_cast<std::uint32_t>(std::atoi(argv[1])), argv[2],
            argc > 3 && std::string(argv[3]) == "keep_all");
  std::cout << "ready" << std::endl;
  int awaited = 0;
  std::string pending;
  while (true) {
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 5) > 0) {
      char part[4'096];
      const ssize_t got = ::read(0, part, sizeof part);
      if (got <= 0) return 0;
      pending.append(part, static_cast<std::size_t>(got));
    }
    for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
      std::istringstream words(pending.substr(0, end));
      pending.erase(0, end + 1);
      std::string verb;
      Position position;
      words >> verb;
      if (verb == "end") return 0;
      if (verb == "matched") {
        words >> awaited;
      } else if (verb == "writer") {
        peer.make_writer();
      } else if (verb == "read") {
        peer.make_reader();
      } else if (verb == "write" && words >> position.ship >> position.number) {
        peer.write(position);
      } else if (verb == "dispose" && words >> position.ship) {
        peer.dispose(position);
      } else {
        std::cerr << verb << " is no command" << std::endl;
        return 2;
      }
    }
    if (awaited > 0 && peer.matched(awaited)) {
      awaited = 0;
      std::cout << "matched" << std::endl;
    }
    peer.take();
  }
}
