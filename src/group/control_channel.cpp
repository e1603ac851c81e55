#include "group/control_channel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

#include <dunlin/error.hpp>

namespace dunlin::group {
namespace {

/// Each message says first how much of the control message is still to come, itself included.
using Remaining = std::uint64_t;
constexpr std::size_t kFragmentBytes = kMaxMessageBytes - sizeof(Remaining);

/// How many long texts may be offered at once: each takes memory, and a region.
constexpr std::ptrdiff_t kMostOffers = 16;

// docs/formats/group-control.md
static_assert(sizeof(Remaining) == 8 && kFragmentBytes == 248 && kGroupChannel == 63);

}  // namespace

ControlChannel::ControlChannel(Fabric& fabric, Options options)
    : fabric_(fabric), options_(options) {
  if (fabric_.receives(options_.channel))
    throw Error("channel " + std::to_string(options_.channel) +
                " of the fabric is in use: a group needs one of its own, and a second group on one "
                "fabric is a FurtherGroup");
  fabric_.receive(options_.channel,
                  [this](Rank from, std::span<const std::byte> message) { take(from, message); });
}

ControlChannel::~ControlChannel() { fabric_.ignore(options_.channel); }

void ControlChannel::send(Rank to, std::vector<std::byte> text) {
  if (outgoing_.size() <= to) outgoing_.resize(fabric_.size());
  if (outgoing_[to] == nullptr) outgoing_[to] = std::make_unique<Outgoing>();
  outgoing_[to]->texts.push_back(std::move(text));
}

void ControlChannel::take(Rank from, std::span<const std::byte> message) {
  Remaining remaining = 0;
  if (message.size() < sizeof remaining) return;
  std::memcpy(&remaining, message.data(), sizeof remaining);
  if (incoming_.size() <= from) incoming_.resize(fabric_.size());
  if (LongTextMessage about; remaining == 0 && message.size() == sizeof about) {
    std::memcpy(&about, message.data(), sizeof about);
    return take(from, about);
  }
  const auto fragment = message.subspan(sizeof remaining);
  std::vector<std::byte>& text = incoming_[from].fragments;
  if (remaining > options_.most_bytes || fragment.size() > options_.most_bytes - text.size())
    return expel(from);
  text.insert(text.end(), fragment.begin(), fragment.end());
  if (remaining <= fragment.size()) arrive(from, std::exchange(text, {}));
}

/// The message is about a text that this member reads, or that a peer reads here.
void ControlChannel::take(Rank from, const LongTextMessage& message) {
  std::unique_ptr<FetchedText>& fetched = incoming_[from].fetched;
  if (flag_ != nullptr) *flag_ = true;
  if (message.kind != LongTextMessage::Kind::ready) {
    if (from < outgoing_.size() && outgoing_[from] != nullptr && outgoing_[from]->offered)
      outgoing_[from]->offered->receive(message);
    return;
  }
  if (fetched != nullptr && fetched->generation() == message.generation)
    return fetched->receive(message);
  if (message.total > options_.most_bytes) return expel(from);
  if (fetched == nullptr) ++fetching_;  // the sender has dropped the old text
  fetched = std::make_unique<FetchedText>(fabric_, options_.channel, from, message);
}

void ControlChannel::expel(Rank from) {
  incoming_[from].fragments = {};
  fabric_.expel(from, "it sent a control message of more than the " +
                          std::to_string(options_.most_bytes) + " bytes that are possible");
}

void ControlChannel::arrive(Rank from, std::vector<std::byte> text) {
  arrived_.push_back({from, std::move(text)});
  if (flag_ != nullptr) *flag_ = true;
}

bool ControlChannel::pending() const noexcept {
  return !arrived_.empty() || fetching_ > 0 || std::ranges::any_of(outgoing_, has_more);
}

/// False if nothing can be sent now.
bool ControlChannel::send_some(Rank to, Outgoing& outgoing) {
  const bool in_fragments =
      outgoing.in_fragments || outgoing.texts.front().size() <= kLongTextBytes;
  return in_fragments ? send_fragment(to, outgoing) : offer(to, outgoing);
}

void ControlChannel::Outgoing::next() {
  offered.reset();
  texts.pop_front();
  sent = 0;
  in_fragments = false;
}

/// Sends the next fragment; false if there is no room for it now.
bool ControlChannel::send_fragment(Rank to, Outgoing& outgoing) {
  const std::vector<std::byte>& text = outgoing.texts.front();
  const Remaining remaining = text.size() - outgoing.sent;
  const std::size_t fragment = std::min<std::size_t>(remaining, kFragmentBytes);
  std::array<std::byte, kMaxMessageBytes> message;
  std::memcpy(message.data(), &remaining, sizeof remaining);
  std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(outgoing.sent), fragment,
              message.begin() + sizeof remaining);
  if (fabric_.send(to, options_.channel, std::span(message).first(sizeof remaining + fragment)) !=
      Refusal::none)
    return false;
  outgoing.sent += fragment;
  if (outgoing.sent == text.size()) outgoing.next();
  return true;
}

/// Offers a long text, which its receiver reads; sends fragments where there is no memory for that.
bool ControlChannel::offer(Rank to, Outgoing& outgoing) {
  if (outgoing.offered == nullptr) {
    if (std::ranges::count_if(outgoing_, offers) >= kMostOffers) return false;
    try {
      outgoing.offered =
          std::make_unique<OfferedText>(fabric_, options_.channel, to, outgoing.texts.front());
    } catch (const std::exception&) {
      return outgoing.in_fragments = true;
    }
  }
  if (outgoing.offered->refused()) {
    outgoing.offered.reset();
    return outgoing.in_fragments = true;
  }
  if (!outgoing.offered->taken()) return outgoing.offered->poll();
  outgoing.next();
  return true;
}

std::size_t ControlChannel::fetch(Rank from, Incoming& incoming) {
  if (incoming.fetched == nullptr || !incoming.fetched->poll()) return 0;
  if (auto text = incoming.fetched->text()) arrive(from, std::move(*text));
  if (incoming.fetched->over()) {
    incoming.fetched.reset();
    --fetching_;
  }
  return 1;
}

void ControlChannel::forget(Rank peer) noexcept {
  if (peer < outgoing_.size()) outgoing_[peer].reset();
  if (peer >= incoming_.size()) return;
  if (incoming_[peer].fetched != nullptr) --fetching_;
  incoming_[peer] = {};
}

std::size_t ControlChannel::poll(const Handler& handler) {
  std::size_t done = 0;
  for (Rank to = 0; to < outgoing_.size(); ++to) {
    std::unique_ptr<Outgoing>& outgoing = outgoing_[to];
    if (!has_more(outgoing) && !(outgoing && fabric_.failed(to))) [[likely]]
      continue;
    if (fabric_.failed(to)) outgoing.reset();
    while (has_more(outgoing) && send_some(to, *outgoing)) ++done;
    // No message tells when there is room again, unlike a receiver that has read an offered text.
    if (has_more(outgoing) && (!outgoing->offered || outgoing->offered->owes_message())) ++done;
  }
  if (fetching_ > 0) [[unlikely]]
    for (Rank from = 0; from < incoming_.size(); ++from) done += fetch(from, incoming_[from]);
  while (!arrived_.empty()) {
    Arrived text = std::move(arrived_.front());
    arrived_.pop_front();
    ++done;
    handler(text.from, std::move(text.bytes));
  }
  return done;
}

}  // namespace dunlin::group
