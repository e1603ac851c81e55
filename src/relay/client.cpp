#include <algorithm>
#include <climits>
#include <utility>

#include <poll.h>

#include <dunlin/error.hpp>
#include <dunlin/relay/client.hpp>

#include "relay/client_state.hpp"

/// The public classes, which forward their calls; and how a program's thread waits.
namespace dunlin::relay {

RelayClient::RelayClient(ClientOptions options)
    : state_(std::make_shared<ClientState>(std::move(options))) {}
RelayClient::~RelayClient() = default;
std::size_t RelayClient::poll() { return state_->poll(); }
int RelayClient::descriptor() const noexcept { return state_->descriptor(); }
short RelayClient::events() const noexcept { return state_->events(); }
std::uint32_t RelayClient::timeout_ms() const noexcept { return state_->timeout_ms(); }
bool RelayClient::connected() const noexcept { return state_->connected(); }
std::string RelayClient::relay() const { return state_->relay(); }
const std::string& RelayClient::why_disconnected() const noexcept {
  return state_->why_disconnected;
}
const ClientCounters& RelayClient::counters() const noexcept { return state_->counters; }

void RelayClient::wait(std::uint32_t timeout_ms) {
  pollfd awaited{.fd = descriptor(), .events = events(), .revents = 0};
  const std::uint32_t limit_ms = std::min({timeout_ms, this->timeout_ms(), std::uint32_t{INT_MAX}});
  ::poll(&awaited, 1, static_cast<int>(limit_ms));
}

bool RelayClient::run_until(const std::function<bool()>& condition, std::uint32_t timeout_ms) {
  const std::uint64_t end_ns =
      read_clock_ns(CLOCK_MONOTONIC) + std::uint64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const std::size_t done = poll();
    if (condition()) return true;
    const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (now_ns >= end_ns) return false;
    // The next poll sends the samples that the condition may have written.
    if (done == 0 && this->timeout_ms() > 0)
      wait(static_cast<std::uint32_t>((end_ns - now_ns) / 1'000'000 + 1));
  }
}

// --- writers -------------------------------------------------------------------------------------

AnyRelayWriter::AnyRelayWriter(const RelayClient& client, const std::string& topic,
                               std::shared_ptr<const pubsub::TypeSupport> type,
                               std::optional<pubsub::TopicQos> qos)
    : state_(std::make_shared<WriterState>()) {
  state_->client = client.state_;
  state_->open = {
      .writes = true, .topic = topic, .type_text = type->text, .type_name = type->name, .qos = qos};
  state_->type = std::move(type);
  state_->number = client.state_->add(state_);
}

pubsub::WriteResult AnyRelayWriter::put(const void* sample, bool disposes) {
  const auto client = state_->client.lock();
  return client ? client->put(*state_, sample, disposes) : pubsub::WriteResult::ended;
}
bool AnyRelayWriter::ready() const noexcept {
  return state_->was_opened && state_->why_refused.empty();
}
const std::string& AnyRelayWriter::why_refused() const noexcept { return state_->why_refused; }
std::uint64_t AnyRelayWriter::written() const noexcept { return state_->written - state_->before; }
std::uint64_t AnyRelayWriter::acknowledged() const noexcept {
  return state_->acknowledged - state_->before;
}
const std::string& AnyRelayWriter::type_text() const noexcept { return state_->type_text; }

// --- readers -------------------------------------------------------------------------------------

AnyRelayReader::AnyRelayReader(const RelayClient& client, const std::string& topic,
                               std::shared_ptr<const pubsub::TypeSupport> type,
                               const ReaderQos& qos, std::optional<pubsub::TopicQos> topic_qos)
    : state_(std::make_shared<ReaderState>()) {
  if (qos.max_samples == 0 || qos.max_samples > pubsub::kMaxReaderSamples)
    throw Error("a reader of topic '" + topic + "' of " + std::to_string(qos.max_samples) +
                " samples; 1 to " + std::to_string(pubsub::kMaxReaderSamples) +
                " are possible (kMaxReaderSamples)");
  state_->client = client.state_;
  state_->open = {.writes = false,
                  .topic = topic,
                  .type_text = type->text,
                  .type_name = type->name,
                  .qos = topic_qos,
                  .reliability = qos.reliability,
                  .durability = qos.durability};
  state_->type = std::move(type);
  state_->max_samples = qos.max_samples;
  state_->number = client.state_->add(state_);
}

bool AnyRelayReader::available() const noexcept { return !state_->samples.empty(); }
std::optional<ReceivedSample> AnyRelayReader::take_one() {
  if (state_->samples.empty()) return std::nullopt;
  ReceivedSample sample = std::move(state_->samples.front());
  state_->samples.pop_front();
  return sample;
}
bool AnyRelayReader::ready() const noexcept { return state_->open_now; }
const std::string& AnyRelayReader::why_refused() const noexcept { return state_->why_refused; }
std::uint64_t AnyRelayReader::lost() const noexcept { return state_->lost; }
std::uint64_t AnyRelayReader::restarts() const noexcept { return state_->restarts; }
const std::string& AnyRelayReader::type_text() const noexcept { return state_->type_text; }
const pubsub::TypeSupport& AnyRelayReader::type() const noexcept { return *state_->type; }
void AnyRelayReader::count_lost() noexcept { ++state_->lost; }

}  // namespace dunlin::relay
