#include "relay/session.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"

namespace dunlin::relay {
namespace {

constexpr std::size_t kFramesAtOnce = 64;  // frames of one client, before others have their turn
constexpr std::uint32_t kStoredSamplesAhead = 1024;  // in the reader of a client that catches up

}  // namespace

/// A writer or reader of the client.
class Session::Endpoint final : public ClientEndpoint {
 public:
  Endpoint(Session& session, std::uint16_t number, Open asked)
      : open(std::move(asked)), session_(session), number_(number) {}
  ~Endpoint() override {
    if (topic) topic->remove(session_.id_, *this);
    session_.context_.topics.stop_waiting(open.topic, *this);
    if (stored) stored.close();
  }

  void on_delivered(std::uint64_t up_to) override {
    delivered = std::max(delivered, up_to);
    if (delivered > acknowledged) session_.mark_due();
  }
  void on_sample(const pubsub::RawSample& sample, const pubsub::SampleInfo& info) override;
  void wake() override { session_.mark_due(); }

  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }

  Open open;
  std::shared_ptr<RelayTopic> topic;
  bool begun = false;
  std::string why_over;  // why it is to be ended; empty: it is not

  // These two are for a writer.
  std::uint64_t delivered = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t published = 0;  // 0: no sample has come yet

  // The others are for a reader.
  pubsub::AnyReader stored;  // set while the reader catches up
  std::uint64_t position = 0;
  std::uint64_t seen =
      0;  // it was given, or was not to be given, all from where it began up to here
  std::uint64_t passed = 0;   // positions since the last given sample that were not to be given
  std::uint64_t lost = 0;     // SampleLostStatus::total_count of `stored`
  std::uint64_t missing = 0;  // stored samples that a trim of a log removed
  std::uint32_t skipped = 0;

 private:
  Session& session_;
  std::uint16_t number_;
};

/// RLY-6: gives a sample to the client, or skips it.
void Session::Endpoint::on_sample(const pubsub::RawSample& sample, const pubsub::SampleInfo& info) {
  DUNLIN_ASSERT(begun, "RLY-7: a subscription has its place before it is given samples");
  if (info.position <= position || !why_over.empty()) return;
  // Skipped positions are those of writers that do not own their instances, and of stored samples
  // that are gone.
  if (seen != 0) passed += info.position - seen - 1;
  passed -= std::min(passed, std::exchange(missing, 0));
  position = seen = info.position;
  if (session_.is_full()) {
    if (open.reliability.kind == pubsub::Reliability::Kind::reliable) {
      why_over = "topic '" + open.topic +
                 "': this reader is too slow: " + std::to_string(session_.connection_.waiting()) +
                 " bytes wait for its client";
      ++session_.context_.counters.dropped;
      return session_.mark_due();
    }
    ++skipped;
    ++session_.context_.counters.skipped;
    return;
  }
  if (sample.payload.size() > kMaxSampleBytes) {
    ++skipped;
    return;
  }
  const auto flags =
      static_cast<std::uint8_t>((sample.plain ? 0U : kXcdr) | (info.valid() ? 0U : kDisposes));
  add_delivered(session_.connection_.output(), number_, flags,
                {.position = info.position,
                 .sequence = info.sequence,
                 .source_ns = info.source_ns,
                 .key_hash = sample.key_hash,
                 .skipped = std::exchange(skipped, 0),
                 .passed = static_cast<std::uint32_t>(
                     std::min<std::uint64_t>(std::exchange(passed, 0), UINT32_MAX)),
                 .payload = sample.payload});
  ++session_.context_.counters.delivered;
  session_.context_.counters.delivered_bytes += sample.payload.size();
  session_.mark_due();
}

Session::Session(RelayContext& context, Connection& connection)
    : context_(context), connection_(connection) {}
Session::~Session() = default;

void Session::mark_due() {
  if (std::exchange(is_due, true)) return;
  context_.due.push_back(this);
}

// --- what comes ----------------------------------------------------------------------------------

std::size_t Session::proceed() {
  std::size_t count = 0;
  blocked_ = false;
  while (count < kFramesAtOnce && !closing_ && !is_full()) {
    const auto frame = parser_.parse(connection_.input());
    if (!frame) {
      if (!parser_.mistake().empty()) break_off(parser_.mistake());
      return count;
    }
    handle(*frame);
    if (blocked_) break;
    connection_.consume(kFrameHeaderBytes + frame->body.size());
    ++count;
  }
  if (!closing_ && count > 0) mark_due();
  return count;
}

/// RLY-8: ends the connection of a client that broke the protocol.
void Session::break_off(const std::string& mistake) {
  ++context_.counters.damaged;
  say_goodbye("the client has broken the protocol: " + mistake);
}

void Session::say_goodbye(const std::string& why) {
  if (std::exchange(closing_, true)) return;
  add_sentence(connection_.output(), FrameKind::goodbye, 0, why);
  endpoints_.clear();
  mark_due();
}

void Session::handle(const Frame& frame) {
  if (greeted_ == (frame.header.kind == FrameKind::hello))
    return break_off(greeted_ ? "a second hello" : "its first frame is no hello");
  switch (frame.header.kind) {
    case FrameKind::hello:
      return handle_hello(frame);
    case FrameKind::open_writer:
    case FrameKind::open_reader:
      return handle_open(frame);
    case FrameKind::sample:
      return handle_sample(frame);
    case FrameKind::close:
      // An endpoint that the relay has ended by itself was answered then.
      if (frame.header.endpoint < endpoints_.size() && endpoints_[frame.header.endpoint])
        end(frame.header.endpoint, "its client has closed it");
      return;
    case FrameKind::ping:
      return add_empty(connection_.output(), FrameKind::pong);
    default:
      return break_off("a frame that clients do not send");
  }
}

void Session::handle_hello(const Frame& frame) {
  const auto hello = read_hello(frame);
  if (!hello) return break_off("a hello that is none");
  if (hello->version != kVersion)
    return say_goodbye("the client speaks version " + std::to_string(hello->version) +
                       " of the relay's protocol, and this relay version " +
                       std::to_string(kVersion));
  id_ = hello->id;
  greeted_ = true;
  add_welcome(connection_.output(), {.name = context_.name});
}

void Session::handle_open(const Frame& frame) {
  auto open = read_open(frame);
  const std::uint16_t number = frame.header.endpoint;
  if (!open) return break_off("an endpoint that cannot be understood");
  if (number < endpoints_.size() && endpoints_[number])
    return break_off("endpoint " + std::to_string(number) + " is opened twice");
  if (open->writes)
    for (const auto& other : endpoints_)
      if (other && other->open.writes && other->open.topic == open->topic)
        return break_off("two writers of topic '" + open->topic + "'");
  if (number >= endpoints_.size()) endpoints_.resize(std::size_t{number} + 1);
  endpoints_[number] = std::make_unique<Endpoint>(*this, number, std::move(*open));
  mark_due();
}

/// RLY-3: publishes a sample.
void Session::handle_sample(const Frame& frame) {
  const std::uint16_t number = frame.header.endpoint;
  Endpoint* const endpoint = number < endpoints_.size() ? endpoints_[number].get() : nullptr;
  // The frame is for an endpoint that was ended, which its client does not know yet.
  if (endpoint == nullptr || !endpoint->why_over.empty()) return;
  const auto sample = read_sample(frame);
  if (!endpoint->open.writes || !endpoint->begun || !sample)
    return break_off("a sample for endpoint " + std::to_string(number) +
                     ", which is no writer that was opened, or without a number");
  const bool follows = endpoint->published == 0 || sample->number == endpoint->published + 1;
  if (!follows)
    return break_off("sample " + std::to_string(sample->number) + " of topic '" +
                     endpoint->open.topic + "' does not follow those before it");
  if (sample->number <= endpoint->delivered) {
    ++context_.counters.repeated;
    endpoint->published = sample->number;
    return;
  }
  std::string why;
  const auto key_hash = endpoint->topic->check(frame.header.flags, *sample, why);
  if (!key_hash)
    return break_off("a sample of " + std::to_string(sample->payload.size()) +
                     " bytes that is none of the type of topic '" + endpoint->open.topic +
                     "': " + why);
  switch (endpoint->topic->publish(id_, frame.header.flags, *sample, *key_hash)) {
    case pubsub::WriteResult::written:
      endpoint->published = sample->number;
      published_ = true;
      ++context_.counters.published;
      context_.counters.published_bytes += sample->payload.size();
      return;
    case pubsub::WriteResult::no_room:
    case pubsub::WriteResult::not_ready:
      blocked_ = true;
      return;
    default:
      endpoint->why_over = endpoint->topic->why_over();
      if (endpoint->why_over.empty()) endpoint->why_over = "the relay's writer has ended";
      return mark_due();
  }
}

// --- what goes -----------------------------------------------------------------------------------

void Session::show_life() {
  if (connection_.waiting() > 0) return;
  add_empty(connection_.output(), FrameKind::pong);
  mark_due();
}

void Session::check_topics() {
  for (const auto& endpoint : endpoints_) {
    if (!endpoint || !endpoint->topic || !endpoint->why_over.empty()) continue;
    endpoint->why_over = endpoint->topic->why_over();
    if (!endpoint->why_over.empty()) mark_due();
  }
}

void Session::end(std::uint16_t number, const std::string& why) {
  endpoints_[number].reset();
  add_sentence(connection_.output(), FrameKind::refused, number, why);
}

bool Session::attend() {
  bool again = false;
  for (std::size_t i = 0; i < endpoints_.size() && !closing_; ++i)
    if (endpoints_[i] && attend(*endpoints_[i])) again = true;
  return again;
}

bool Session::attend(Endpoint& endpoint) {
  if (endpoint.why_over.empty() && !endpoint.begun) begin(endpoint);
  if (endpoint.begun && endpoint.stored) give_stored(endpoint);
  if (!endpoint.why_over.empty()) {
    end(endpoint.number(), std::string(endpoint.why_over));
    return false;
  }
  // RLY-10: the client may be told only then.
  const bool may_be_told = endpoint.begun && endpoint.topic->is_safe();
  if (endpoint.delivered > endpoint.acknowledged && may_be_told && !is_full()) {
    endpoint.acknowledged = endpoint.delivered;
    add_acknowledged(connection_.output(), endpoint.number(), endpoint.delivered);
  }
  if (!endpoint.begun && endpoint.topic)
    endpoint.topic->add_waiting(endpoint);
  else if (!endpoint.begun)
    context_.topics.await(endpoint.open.topic, endpoint);
  // The socket tells of a queue that is full; nothing tells of stored samples.
  return endpoint.stored && !is_full();
}

void Session::begin(Endpoint& endpoint) {
  const Open& open = endpoint.open;
  try {
    if (!endpoint.topic) endpoint.topic = context_.topics.find(open, endpoint.why_over);
    if (!endpoint.topic) return;
    RelayTopic& topic = *endpoint.topic;
    const auto ready = topic.prepare(open, endpoint.why_over);
    if (ready != RelayTopic::Ready::yes) return;
    const pubsub::AnyTopic& what = topic.topic();
    const bool wants_stored = open.durability.kind != pubsub::Durability::Kind::volatile_;
    if (!open.writes && wants_stored && !endpoint.stored) {
      if (what.qos().level < pubsub::Level::volatile_storage) {
        endpoint.why_over = "topic '" + open.topic + "' stores nothing: its level is " +
                            std::string(pubsub::describe(what.qos().level)) +
                            "; request Durability::Kind::volatile_";
        return;
      }
      pubsub::DataReaderQos qos;
      qos << pubsub::Reliability::best_effort() << open.durability << pubsub::History::keep_all()
          << pubsub::Ownership{.kind = pubsub::Ownership::Kind::either}
          << pubsub::ResourceLimits{.max_samples = kStoredSamplesAhead,
                                    .max_instances = kMostInstances};
      qos.slow_reader = {.kind = pubsub::SlowReader::Kind::drop,
                         .after_ns = context_.options.slow_ns};
      endpoint.stored = topic.make_reader(qos);
    }
    if (endpoint.stored && !endpoint.stored.ready()) {
      endpoint.why_over = endpoint.stored.why_refused();
      return;
    }
    endpoint.begun = true;
    Opened opened{.beginning = what.beginning(),
                  .position = what.position(),
                  .level = what.qos().level,
                  .type_text = what.type_text()};
    if (open.writes) {
      endpoint.delivered = endpoint.acknowledged = what.delivered_of(id_);
      opened.number = endpoint.delivered;
      topic.add_writer(id_, endpoint);
    } else {
      // RLY-7: the reader goes on behind its position, if that is one in this topic.
      const bool goes_on =
          open.after_beginning == what.beginning() && what.qos().level != pubsub::Level::unordered;
      endpoint.position = goes_on ? open.after_position : 0;
      if (!endpoint.stored) {
        endpoint.position = std::max(endpoint.position, goes_on ? 0 : what.position());
        endpoint.seen = std::max(endpoint.position, what.position());
        topic.add_reader(endpoint);
      }
    }
    count_if_resumed(endpoint);
    add_opened(connection_.output(), endpoint.number(), opened);
  } catch (const Error& error) {
    endpoint.why_over = error.what();
  }
}

/// Counts a connection as resumed if samples were delivered before it published any, or a reader
/// brings its position in the topic: both come from an earlier connection.
void Session::count_if_resumed(const Endpoint& endpoint) {
  const bool comes_back = endpoint.open.writes ? endpoint.delivered > 0 && !published_
                                               : endpoint.open.after_beginning != 0;
  if (!comes_back || std::exchange(resumed_, true)) return;
  ++context_.counters.resumed;
}

/// Gives stored samples. Once a reader has all of them, it goes on with new samples, like all other
/// readers: as nothing is delivered meanwhile, there is neither gap nor duplicate.
void Session::give_stored(Endpoint& endpoint) {
  const pubsub::SampleLostStatus lost = endpoint.stored.sample_lost_status();
  const bool dropped = lost.dropped;
  endpoint.missing += lost.total_count - std::exchange(endpoint.lost, lost.total_count);
  while (!is_full()) {
    const auto samples = endpoint.stored.take({.max_samples = 1});
    if (samples.size() == 0) break;
    endpoint.on_sample(*static_cast<const pubsub::RawSample*>(samples.data(0)), samples.info(0));
  }
  if (dropped && !endpoint.stored.available()) {
    endpoint.why_over =
        "topic '" + endpoint.open.topic + "': this reader was too slow in taking what is stored";
    ++context_.counters.dropped;
    return;
  }
  const auto next = endpoint.stored.next_in_order();
  if (next.has_sample || next.waits) return;
  const std::uint64_t position = endpoint.topic->topic().position();
  if (endpoint.seen != 0) endpoint.passed += position - endpoint.seen;
  endpoint.seen = position;
  endpoint.stored.close();
  endpoint.stored = {};
  endpoint.topic->add_reader(endpoint);
}

}  // namespace dunlin::relay
