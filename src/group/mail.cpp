#include "group/mail.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace dunlin::group {
namespace {

/// Each message says first how much of the letter is still to come, itself included.
using Remaining = std::uint64_t;
constexpr std::size_t kPartBytes = kMaxMessageBytes - sizeof(Remaining);

// docs/formats/group-control.md
static_assert(sizeof(Remaining) == 8 && kPartBytes == 248 && kGroupChannel == 63);

}  // namespace

Mail::Mail(Fabric& fabric) : fabric_(fabric), outgoing_(fabric.size()), incoming_(fabric.size()) {
  fabric_.receive(kGroupChannel,
                  [this](Rank from, std::span<const std::byte> message) { take(from, message); });
}

Mail::~Mail() {
  fabric_.receive(kGroupChannel, [](Rank, std::span<const std::byte>) {});
}

void Mail::send(Rank to, std::vector<std::byte> letter) {
  outgoing_[to].letters.push_back(std::move(letter));
}

void Mail::take(Rank from, std::span<const std::byte> message) {
  Remaining remaining = 0;
  if (message.size() < sizeof remaining) return;
  std::memcpy(&remaining, message.data(), sizeof remaining);
  const auto part = message.subspan(sizeof remaining);
  std::vector<std::byte>& letter = incoming_[from];
  letter.insert(letter.end(), part.begin(), part.end());
  if (remaining <= part.size()) arrived_.push_back({from, std::exchange(letter, {})});
}

/// The next part; false if there is no room for it now.
bool Mail::send_one(Rank to, Outgoing& outgoing) {
  const std::vector<std::byte>& letter = outgoing.letters.front();
  const Remaining remaining = letter.size() - outgoing.sent;
  const std::size_t part = std::min<std::size_t>(remaining, kPartBytes);
  std::array<std::byte, kMaxMessageBytes> message;
  std::memcpy(message.data(), &remaining, sizeof remaining);
  std::copy_n(letter.begin() + static_cast<std::ptrdiff_t>(outgoing.sent), part,
              message.begin() + sizeof remaining);
  if (fabric_.send(to, kGroupChannel, std::span(message).first(sizeof remaining + part)) !=
      Refusal::none)
    return false;
  outgoing.sent += part;
  if (outgoing.sent < letter.size()) return true;
  outgoing.sent = 0;
  outgoing.letters.pop_front();
  return true;
}

std::size_t Mail::poll(const Handler& handler) {
  std::size_t done = 0;
  for (Rank to = 0; to < outgoing_.size(); ++to) {
    Outgoing& outgoing = outgoing_[to];
    if (outgoing.letters.empty()) [[likely]]
      continue;
    if (fabric_.failed(to)) outgoing = {};
    while (!outgoing.letters.empty() && send_one(to, outgoing)) ++done;
    if (!outgoing.letters.empty()) ++done;  // there will be room
  }
  while (!arrived_.empty()) {
    const Letter letter = std::move(arrived_.front());
    arrived_.pop_front();
    ++done;
    handler(letter.from, letter.bytes);
  }
  return done;
}

}  // namespace dunlin::group
