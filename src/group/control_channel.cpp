#include "group/control_channel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>

namespace dunlin::group {
namespace {

/// Each message says first how much of the control message is still to come, itself included.
using Remaining = std::uint64_t;
constexpr std::size_t kFragmentBytes = kMaxMessageBytes - sizeof(Remaining);

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
  const auto fragment = message.subspan(sizeof remaining);
  if (incoming_.size() <= from) incoming_.resize(fabric_.size());
  std::vector<std::byte>& text = incoming_[from];
  if (remaining > options_.most_bytes || fragment.size() > options_.most_bytes - text.size()) {
    text = {};
    return fabric_.expel(from, "it sent a control message of more than the " +
                                   std::to_string(options_.most_bytes) +
                                   " bytes that are possible");
  }
  text.insert(text.end(), fragment.begin(), fragment.end());
  if (remaining > fragment.size()) return;
  arrived_.push_back({from, std::exchange(text, {})});
  if (flag_ != nullptr) *flag_ = true;
}

bool ControlChannel::pending() const noexcept {
  return !arrived_.empty() || std::ranges::any_of(outgoing_, has_more);
}

/// The next part; false if there is no room for it now.
bool ControlChannel::send_one(Rank to, Outgoing& outgoing) {
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
  if (outgoing.sent < text.size()) return true;
  outgoing.sent = 0;
  outgoing.texts.pop_front();
  return true;
}

std::size_t ControlChannel::poll(const Handler& handler) {
  std::size_t done = 0;
  for (Rank to = 0; to < outgoing_.size(); ++to) {
    std::unique_ptr<Outgoing>& outgoing = outgoing_[to];
    if (!has_more(outgoing) && !(outgoing && fabric_.failed(to))) [[likely]]
      continue;
    if (fabric_.failed(to)) outgoing.reset();
    while (has_more(outgoing) && send_one(to, *outgoing)) ++done;
    if (has_more(outgoing)) ++done;  // there will be room
  }
  while (!arrived_.empty()) {
    const Arrived text = std::move(arrived_.front());
    arrived_.pop_front();
    ++done;
    handler(text.from, text.bytes);
  }
  return done;
}

}  // namespace dunlin::group
