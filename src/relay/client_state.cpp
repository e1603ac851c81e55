#include "relay/client_state.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <span>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>

#include <dunlin/error.hpp>

#include "assert.hpp"

namespace dunlin::relay {
namespace {

constexpr std::size_t kSentAhead =
    262'144;  // that wait for the socket; the rest is kept by writers
constexpr std::uint64_t kPingsASilence = 3;

std::uint64_t clock_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

ClientId draw_id() {
  ClientId id;
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
    throw Error("cannot draw a random id for a client: " + error_text(errno));
  return id;
}

struct HostAndPort {
  std::string host;
  std::string port;
};
HostAndPort split(const std::string& relay) {
  const std::size_t colon = relay.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == relay.size())
    throw Error("relay '" + relay + "': give HOST:PORT or [v6]:PORT");
  HostAndPort parts{.host = relay.substr(0, colon), .port = relay.substr(colon + 1)};
  if (parts.host.starts_with('[') && parts.host.ends_with(']'))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

}  // namespace

ClientState::ClientState(ClientOptions options)
    : options_(std::move(options)),
      make_pipe_(pipe_maker(Side::client, options_.secret)),
      id_(draw_id()) {
  if (options_.relays.empty() || options_.relays.size() > kMaxRelays)
    throw Error("a client of " + std::to_string(options_.relays.size()) + " relays; give 1 to " +
                std::to_string(kMaxRelays) + " as HOST:PORT (kMaxRelays)");
  if (options_.window_bytes == 0 || options_.window_samples == 0 || options_.silence_ns == 0)
    throw Error(
        "a client with a window of 0 can write nothing, and one with a silence of 0 loses "
        "each relay at once; give more");
  for (const std::string& relay : options_.relays) resolve(relay);
}

ClientState::~ClientState() = default;

void ClientState::resolve(const std::string& relay) {
  const HostAndPort parts = split(relay);
  std::string fault;
  const auto found = find_addresses(parts.host, parts.port, AI_ADDRCONFIG, fault);
  if (found.empty()) throw Error("relay '" + relay + "': its address cannot be found: " + fault);
  for (const SocketAddress& at : found) relays_.push_back({.text = relay, .at = at});
}

// --- the connection ------------------------------------------------------------------------------

void ClientState::connect() {
  const SocketAddress& at = relays_[current_].at;
  Descriptor socket = new_stream_socket(at);
  due_ns_ = clock_ns() + options_.connect_ns;
  if (!socket) return disconnect("no socket: " + error_text(errno));
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const int result = ::connect(socket.get(), at.generic(), at.bytes);
  const int failure = result == 0 ? 0 : errno;
  connection_ =
      std::make_unique<Connection>(std::move(socket), make_pipe_ ? make_pipe_() : nullptr);
  parser_ = FrameParser(Side::relay);
  if (failure != 0 && failure != EINPROGRESS)
    return disconnect("cannot connect: " + error_text(failure));
  connecting_ = true;
  heard_bytes_ = 0;
  pinged_ns_ = 0;
  add_hello(connection_->output(), {.id = id_});
}

/// Returns false if the connection is not made yet, or has failed.
bool ClientState::finish_connecting() {
  pollfd awaited{.fd = connection_->socket(), .events = POLLOUT, .revents = 0};
  if (::poll(&awaited, 1, 0) <= 0) return false;
  if (const std::string fault = connection_fault(awaited.fd); !fault.empty()) {
    disconnect("cannot connect: " + fault);
    return false;
  }
  connecting_ = false;
  return true;
}

/// Ends the connection. The next relay is tried at once, unless all were tried in vain.
void ClientState::disconnect(const std::string& why) {
  why_disconnected = "relay " + relays_[current_].text + ": " + why;
  failures_ = welcomed_ ? 1 : failures_ + 1;
  connection_.reset();
  connecting_ = welcomed_ = false;
  current_ = (current_ + 1) % relays_.size();
  due_ns_ = clock_ns() + (failures_ % relays_.size() == 0 ? options_.retry_ns : 0);
  for (Slot& slot : slots_) {
    slot.is_sent = slot.closing = false;
    if (slot.writer) slot.writer->open_now = false;
    if (slot.reader) slot.reader->open_now = false;
  }
}

std::size_t ClientState::poll() {
  const std::uint64_t now_ns = clock_ns();
  if (!connection_) {
    if (now_ns < due_ns_) return 0;
    connect();
    return 1;
  }
  if (!welcomed_ && now_ns >= due_ns_) {
    disconnect("it does not answer");
    return 1;
  }
  if (connecting_ && !finish_connecting()) return 0;
  std::size_t done = 0;
  bool alive = true;
  if (!is_full()) alive = connection_->read();
  const std::string why = alive ? "" : connection_->why();
  done += take_frames();  // frames that came before the end
  if (!connection_) return done;
  if (!alive) {
    disconnect(why);
    return done + 1;
  }
  close_unused();
  if (welcomed_) {
    open_endpoints();
    done += send_samples();
  }
  if (!connection_->write()) {
    disconnect(std::string(connection_->why()));
    return done + 1;
  }
  check_silence(now_ns);
  return done;
}

void ClientState::check_silence(std::uint64_t now_ns) {
  if (connection_->bytes_received() != heard_bytes_ || heard_ns_ == 0) {
    heard_bytes_ = connection_->bytes_received();
    heard_ns_ = now_ns;
    pinged_ns_ = 0;
  }
  if (!welcomed_ || is_full()) return;
  if (pinged_ns_ == 0) {
    if (now_ns - heard_ns_ < options_.silence_ns / kPingsASilence) return;
    pinged_ns_ = now_ns;
    add_empty(connection_->output(), FrameKind::ping);
  } else if (now_ns - pinged_ns_ >= options_.silence_ns) {
    disconnect("it is silent");
  }
}

int ClientState::descriptor() const noexcept { return connection_ ? connection_->socket() : -1; }

short ClientState::events() const noexcept {
  if (!connection_) return 0;
  if (connecting_) return POLLOUT;
  return static_cast<short>((is_full() ? 0 : POLLIN) |
                            (connection_->wants_to_write() ? POLLOUT : 0));
}

std::uint32_t ClientState::timeout_ms() const noexcept {
  const std::uint64_t now_ns = clock_ns();
  std::uint64_t at_ns = due_ns_;
  if (welcomed_) {
    at_ns = pinged_ns_ == 0 ? heard_ns_ + options_.silence_ns / kPingsASilence
                            : pinged_ns_ + options_.silence_ns;
    for (const Slot& slot : slots_) {
      const bool to_open = (slot.writer || slot.reader) && !slot.is_sent;
      const bool to_send = slot.writer && slot.writer->open_now &&
                           slot.writer->next < slot.writer->kept.size() &&
                           connection_->waiting() < kSentAhead && may_send(*slot.writer);
      if (to_open || to_send) return 0;
    }
  }
  constexpr std::uint64_t kLongestMs = 60'000;
  if (at_ns <= now_ns) return 0;
  return static_cast<std::uint32_t>(std::min(kLongestMs, (at_ns - now_ns) / 1'000'000 + 1));
}

// --- what comes ----------------------------------------------------------------------------------

bool ClientState::is_full() const noexcept {
  return std::ranges::any_of(slots_, [](const Slot& slot) {
    return slot.reader && slot.reader->samples.size() >= slot.reader->max_samples;
  });
}

std::size_t ClientState::take_frames() {
  std::size_t count = 0;
  while (connection_ && !is_full()) {
    const auto frame = parser_.parse(connection_->input());
    std::string mistake = parser_.mistake();
    if (!frame && mistake.empty()) return count;
    if (frame) mistake = handle(*frame);
    if (!mistake.empty()) {
      disconnect(mistake);
      return count + 1;
    }
    connection_->consume(kFrameHeaderBytes + frame->body.size());
    ++count;
  }
  return count;
}

/// Handles a frame; returns why the connection is over, or an empty text if it is not.
std::string ClientState::handle(const Frame& frame) {
  if (frame.header.kind == FrameKind::goodbye)
    return read_sentence(frame).value_or("it says goodbye, and not why");
  if (frame.header.kind == FrameKind::welcome) return handle_welcome(frame);
  if (!welcomed_) return "its first frame is no welcome";
  if (frame.header.kind == FrameKind::pong) return {};
  // The frame is for an endpoint that was closed here, which the relay does not know yet.
  if (frame.header.endpoint >= slots_.size()) return "a frame for an endpoint that was not opened";
  Slot& slot = slots_[frame.header.endpoint];
  switch (frame.header.kind) {
    case FrameKind::opened:
      return handle_opened(frame, slot);
    case FrameKind::refused:
      return handle_refused(frame, slot);
    case FrameKind::acknowledged:
      return handle_acknowledged(frame, slot);
    default:
      return handle_delivered(frame, slot);
  }
}

std::string ClientState::handle_welcome(const Frame& frame) {
  const auto welcome = read_welcome(frame);
  if (!welcome || welcomed_) return "a welcome that is none";
  if (welcome->version != kVersion)
    return "it speaks version " + std::to_string(welcome->version) +
           " of the relay's protocol, and this client version " + std::to_string(kVersion);
  welcomed_ = true;
  failures_ = 0;
  ++counters.connections;
  return {};
}

std::string ClientState::handle_opened(const Frame& frame, Slot& slot) {
  const auto opened = read_opened(frame);
  if (!opened) return "an answer that cannot be understood";
  if (slot.writer) {
    WriterState& writer = *slot.writer;
    writer.type_text = opened->type_text;
    if (!std::exchange(writer.was_opened, true))
      writer.before = writer.written = writer.acknowledged = std::max(used_, opened->number);
    writer.open_now = true;
    writer.next = 0;
    return settle(writer, opened->number) ? "" : "it has samples that were not written";
  }
  if (!slot.reader) return {};
  ReaderState& reader = *slot.reader;
  reader.type_text = opened->type_text;
  reader.open_now = true;
  const bool is_new = reader.open.after_beginning == 0;
  const bool goes_on =
      reader.open.after_beginning == opened->beginning && opened->level != pubsub::Level::unordered;
  if (goes_on) return {};
  const bool wants_stored = reader.open.durability.kind != pubsub::Durability::Kind::volatile_;
  reader.open.after_beginning = opened->beginning;
  reader.open.after_position = wants_stored ? 0 : opened->position;
  // A sample that a topic has dropped is lost only for a reader that was there before.
  reader.counts_from_start = !is_new || !wants_stored;
  if (is_new) return {};
  ++reader.restarts;
  const bool is_ordered = opened->level != pubsub::Level::unordered;
  if (is_ordered && !wants_stored) reader.lost += opened->position;
  return {};
}

std::string ClientState::handle_refused(const Frame& frame, Slot& slot) {
  const auto why = read_sentence(frame);
  if (!why) return "a refusal that cannot be understood";
  slot.closing = false;
  if (slot.writer) slot.writer->why_refused = *why;
  if (slot.reader) slot.reader->why_refused = *why;
  if (slot.writer) slot.writer->open_now = false;
  if (slot.reader) slot.reader->open_now = false;
  return {};
}

/// RLY-4: counts acknowledged samples; false if that many were not written.
bool ClientState::settle(WriterState& writer, std::uint64_t number) {
  DUNLIN_ASSERT(writer.kept.size() == writer.written - writer.acknowledged,
                "RLY-4: a client keeps each sample until it is acknowledged");
  if (number > writer.written) return false;
  while (writer.acknowledged < number) {
    writer.kept_bytes -= writer.kept.front().payload.size();
    writer.kept.pop_front();
    if (writer.next > 0) --writer.next;
    ++writer.acknowledged;
    ++counters.acknowledged;
  }
  return true;
}

std::string ClientState::handle_acknowledged(const Frame& frame, Slot& slot) {
  const auto number = read_acknowledged(frame);
  if (!number) return "an acknowledgement that is none";
  if (!slot.writer) return {};
  return settle(*slot.writer, *number) ? "" : "it acknowledges samples that were not written";
}

/// RLY-7: takes a delivered sample.
std::string ClientState::handle_delivered(const Frame& frame, Slot& slot) {
  const auto sample = read_delivered(frame);
  if (!sample) return "a sample that is none";
  if (!slot.reader) return {};
  ReaderState& reader = *slot.reader;
  std::uint64_t& reached = reader.open.after_position;
  if (sample->position <= reached) return "a sample that was there before";
  const std::uint64_t between = sample->position - reached - 1;
  const bool is_counted = reached != 0 || std::exchange(reader.counts_from_start, false);
  if (is_counted && sample->passed > between) return "a sample behind more than there are";
  if (is_counted) reader.lost += between - sample->passed;
  reached = sample->position;
  reader.samples.push_back({.valid = (frame.header.flags & kDisposes) == 0,
                            .plain = (frame.header.flags & kXcdr) == 0,
                            .key_hash = sample->key_hash,
                            .position = sample->position,
                            .sequence = sample->sequence,
                            .source_ns = sample->source_ns,
                            .payload = {sample->payload.begin(), sample->payload.end()}});
  ++counters.received;
  return {};
}

// --- what goes -----------------------------------------------------------------------------------

std::uint16_t ClientState::free_number() const {
  for (std::uint16_t number = 0; number < kMaxEndpoints; ++number)
    if (number >= slots_.size() || slots_[number].is_free()) return number;
  throw Error("this client has " + std::to_string(kMaxEndpoints) +
              " writers and readers; more are not possible (kMaxEndpoints)");
}

std::uint16_t ClientState::add(const std::shared_ptr<WriterState>& writer) {
  for (const Slot& slot : slots_)
    if (slot.writer && slot.writer->open.topic == writer->open.topic)
      throw Error("topic '" + writer->open.topic +
                  "': this client has a writer of it already; use that one, or another client");
  const std::uint16_t number = free_number();
  if (number >= slots_.size()) slots_.resize(std::size_t{number} + 1);
  slots_[number] = {.writer = writer};
  return number;
}

std::uint16_t ClientState::add(const std::shared_ptr<ReaderState>& reader) {
  const std::uint16_t number = free_number();
  if (number >= slots_.size()) slots_.resize(std::size_t{number} + 1);
  slots_[number] = {.reader = reader};
  return number;
}

/// Closes endpoints of which no handle is left; a writer first gets its samples acknowledged.
void ClientState::close_unused() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const bool over = (slot.writer && slot.writer.use_count() == 1 &&
                       (slot.writer->kept.empty() || !slot.writer->why_refused.empty())) ||
                      (slot.reader && slot.reader.use_count() == 1);
    if (!over) continue;
    const bool was_refused =
        !(slot.writer ? slot.writer->why_refused : slot.reader->why_refused).empty();
    const bool has_to_close = slot.is_sent && !was_refused;
    if (has_to_close)
      add_empty(connection_->output(), FrameKind::close, static_cast<std::uint16_t>(i));
    if (slot.writer) used_ = std::max(used_, slot.writer->written);
    slot = {.closing = has_to_close};
  }
}

void ClientState::open_endpoints() {
  for (Slot& slot : slots_) {
    if (slot.is_sent || (!slot.writer && !slot.reader)) continue;
    const std::string& refused = slot.writer ? slot.writer->why_refused : slot.reader->why_refused;
    slot.is_sent = true;
    if (!refused.empty()) continue;
    add_open(connection_->output(), slot.writer ? slot.writer->number : slot.reader->number,
             slot.writer ? slot.writer->open : slot.reader->open);
  }
}

/// RLY-7: a client's sample must not overtake a reader of that client which goes on at another
/// relay and is not accepted there yet.
bool ClientState::may_send(const WriterState& writer) const noexcept {
  return std::ranges::none_of(slots_, [&](const Slot& slot) {
    const ReaderState* const reader = slot.reader.get();
    return reader != nullptr && !reader->open_now && reader->open.after_beginning != 0 &&
           reader->why_refused.empty() && reader->open.topic == writer.open.topic;
  });
}

std::size_t ClientState::send_samples() {
  std::size_t count = 0;
  for (Slot& slot : slots_) {
    if (!slot.writer || !slot.writer->open_now || !may_send(*slot.writer)) continue;
    WriterState& writer = *slot.writer;
    while (writer.next < writer.kept.size() && connection_->waiting() < kSentAhead) {
      WriterState::Kept& kept = writer.kept[writer.next++];
      DUNLIN_ASSERT(kept.sample.number == writer.acknowledged + writer.next,
                    "RLY-3: a client sends its samples in the order of their numbers");
      kept.sample.payload = kept.payload;
      add_sample(connection_->output(), writer.number, kept.flags, kept.sample);
      if (std::exchange(kept.was_sent, true)) ++counters.sent_again;
      ++count;
    }
  }
  return count;
}

pubsub::WriteResult ClientState::put(WriterState& writer, const void* sample, bool disposes) {
  if (!writer.why_refused.empty()) return pubsub::WriteResult::refused;
  if (!writer.was_opened) return pubsub::WriteResult::not_ready;
  if (writer.kept.size() >= options_.window_samples || writer.kept_bytes >= options_.window_bytes)
    return pubsub::WriteResult::no_room;
  WriterState::Kept kept;
  kept.flags = disposes ? kDisposes : std::uint8_t{0};
  const pubsub::TypeSupport& type = *writer.type;
  if (type.plain) {
    const auto* const bytes = static_cast<const std::byte*>(sample);
    kept.payload.assign(bytes, bytes + type.bytes);
  } else {
    type.encode(sample, kept.payload);
    const bool plain = type.raw && static_cast<const pubsub::RawSample*>(sample)->plain;
    if (!plain) kept.flags |= kXcdr;
  }
  if (kept.payload.size() > kMaxSampleBytes)
    throw Error("topic '" + writer.open.topic + "': a sample of " +
                std::to_string(kept.payload.size()) + " bytes; a relay takes at most " +
                std::to_string(kMaxSampleBytes) + " (kMaxSampleBytes)");
  if (type.raw) kept.sample.key_hash = static_cast<const pubsub::RawSample*>(sample)->key_hash;
  if (type.keyed) {
    std::vector<std::byte> key;
    type.append_key(sample, key);
    kept.sample.key_hash = pubsub::hash_key(key);
  }
  kept.sample.number = ++writer.written;
  writer.kept_bytes += kept.payload.size();
  writer.kept.push_back(std::move(kept));
  ++counters.written;
  return pubsub::WriteResult::written;
}

}  // namespace dunlin::relay
