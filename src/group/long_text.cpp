#include "group/long_text.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace dunlin::group {
namespace {

/// The most bytes that one poll reads: a copy of them does not hold up what else the member does.
constexpr std::size_t kReadBytes = std::size_t{1} << 18;

// docs/formats/group-control.md
static_assert(sizeof(LongTextMessage) == 40 && sizeof(LongTextMessage) <= kMaxMessageBytes);
static_assert(kWindowBytes % kReadBytes == 0, "a piece lies in one window, and begins at a word");

/// Generations count the texts of one sender.
std::string region_name(std::uint32_t channel, Rank sender) {
  return "text:" + std::to_string(channel) + ':' + std::to_string(sender);
}

std::size_t window_bytes(std::size_t text_bytes) noexcept {
  return std::min(text_bytes, kWindowBytes);
}

bool send(Fabric& fabric, Rank to, std::uint32_t channel, const LongTextMessage& message) {
  return fabric.send(to, channel, std::as_bytes(std::span(&message, 1))) == Refusal::none;
}

}  // namespace

bool is_offer(const LongTextMessage& message) noexcept {
  return message.kind == LongTextMessage::Kind::ready && message.bytes > 0 &&
         message.bytes == window_bytes(message.total);
}

// --- at its sender -------------------------------------------------------------------------------

OfferedText::OfferedText(Fabric& fabric, std::uint32_t channel, Rank to,
                         std::span<const std::byte> text)
    : fabric_(fabric),
      channel_(channel),
      to_(to),
      text_(text),
      window_(fabric.allocate(
          {.name = region_name(channel, fabric.rank()), .bytes = window_bytes(text.size())})) {
  fill();
  fabric_.announce(window_, std::span(&to_, 1));
}

void OfferedText::fill() {
  const auto next = text_.subspan(ready_, window_bytes(text_.size() - ready_));
  std::ranges::copy(next, window_.memory().begin());
  ready_ += next.size();
}

bool OfferedText::poll() {
  if (!owes_message_) return false;
  owes_message_ = !send(fabric_, to_, channel_,
                        {.kind = LongTextMessage::Kind::ready,
                         .generation = fabric_.generation(window_),
                         .bytes = ready_,
                         .total = text_.size()});
  return !owes_message_;
}

void OfferedText::receive(const LongTextMessage& message) {
  if (message.generation != fabric_.generation(window_)) return;
  if (message.kind == LongTextMessage::Kind::refused) refused_ = true;
  if (message.kind != LongTextMessage::Kind::taken || message.bytes != ready_) return;
  taken_ = ready_;
  if (taken()) return;
  fill();
  owes_message_ = true;
}

// --- at its receiver -----------------------------------------------------------------------------

FetchedText::FetchedText(Fabric& fabric, std::uint32_t channel, Rank from,
                         const LongTextMessage& offer)
    : fabric_(fabric),
      channel_(channel),
      from_(from),
      generation_(offer.generation),
      total_(offer.total),
      ready_(offer.bytes) {
  if (!is_offer(offer)) refuse();
}

void FetchedText::begin() {
  try {
    text_.reserve(total_);
    own_ = fabric_.allocate(
        {.name = region_name(channel_, from_), .bytes = 8, .generation = generation_});
  } catch (const std::exception&) {
    refuse();
  }
  begun_ = true;
}

/// Asks for fragments, which need less memory at once.
void FetchedText::refuse() noexcept {
  text_ = {};
  owes_ = LongTextMessage::Kind::refused;
  owes_message_ = true;
}

FetchedText::~FetchedText() {
  if (!completion_.finished()) fabric_.abandon(completion_);
}

void FetchedText::receive(const LongTextMessage& message) {
  // The window has been taken, so the next window has other bytes: no more than it can have.
  if (message.generation == generation_ && told_ == ready_ && message.bytes > ready_ &&
      message.bytes <= ready_ + window_bytes(total_ - ready_))
    ready_ = message.bytes;
}

std::optional<std::vector<std::byte>> FetchedText::text() {
  if (read_ < total_ || text_.size() < total_) return std::nullopt;
  return std::exchange(text_, {});
}

bool FetchedText::poll() {
  if (over_) return false;
  if (fabric_.failed(from_)) return over_ = true;
  if (!begun_ && !owes_message_) begin();
  if (!owes_message_) return completion_.finished() && read();
  if (!send(fabric_, from_, channel_, {.kind = owes_, .generation = generation_, .bytes = read_}))
    return true;  // there will be room for it
  owes_message_ = false;
  told_ = read_;
  over_ = owes_ == LongTextMessage::Kind::refused || read_ == total_;
  return true;
}

/// Reads the next piece of what is ready, once the last piece is there.
bool FetchedText::read() {
  const bool got_piece = reading_ > 0;
  const bool connected = fabric_.connected(from_, own_.id());
  read_ += std::exchange(reading_, 0);
  // The sender gives the window back once all has been taken; earlier only if it stops.
  if (completion_.failed() || (was_connected_ && !connected && read_ < total_)) {
    refuse();
    return true;
  }
  was_connected_ = connected;
  if (read_ == ready_) {
    owes_message_ = told_ < read_;
    return got_piece;
  }
  if (!connected) return got_piece;
  const std::size_t bytes = std::min(kReadBytes, ready_ - read_);
  text_.resize(read_ + bytes);
  const Operation piece =
      dunlin::read(from_, own_.id(), read_ % kWindowBytes, text_.data() + read_, bytes);
  const Refusal refusal = fabric_.post(piece.notify(completion_)).refusal;
  if (refusal == Refusal::none)
    reading_ = bytes;
  else if (refusal != Refusal::queue_full)
    refuse();  // the sender's window is invalid
  return true;
}

}  // namespace dunlin::group
