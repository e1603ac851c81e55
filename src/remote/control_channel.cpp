#include "remote/control_channel.hpp"

#include <string>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "scoped_flag.hpp"

namespace dunlin::remote {

ControlChannel::ControlChannel(const Progress& progress, std::uint32_t channel, Handler handler)
    : ControlChannel(progress, channel, std::move(handler), progress.size()) {}

ControlChannel::ControlChannel(const Progress& progress, std::uint32_t channel, Handler handler,
                               std::uint32_t ranks)
    : fabric_(progress.fabric()), ranks_(ranks), channel_(channel), handler_(std::move(handler)) {
  DUNLIN_ASSERT_ALWAYS(ranks_ <= progress.capacity(), "a channel is between ranks of members");
  if (fabric_.receives(channel_))
    throw Error("channel " + std::to_string(channel_) +
                " of the fabric is in use: give each object that sends on it another one");
  fabric_.receive(channel_, [this](Rank from, std::span<const std::byte> message) {
    if (from < ranks_) handler_(from, message);
  });
}

ControlChannel::~ControlChannel() { fabric_.ignore(channel_); }

void ControlChannel::send(Rank to, std::span<const std::byte> message) {
  DUNLIN_ASSERT(to < ranks_ && message.size() <= kMaxMessageBytes,
                "a message goes to a rank of the channel, and fits into one of the fabric's");
  const bool at_once = waiting_.empty() && !polling_ && to != fabric_.rank();
  if (at_once && fabric_.send(to, channel_, message) != Refusal::queue_full) return;
  if (to == fabric_.rank()) fabric_.wake_at(fabric_.now_ns());  // no other event makes us poll
  Waiting& last = waiting_.emplace_back();
  last.to = to;
  last.bytes = message.size();
  std::memcpy(last.content.data(), message.data(), message.size());
}

/// Each message that waits has one try; the order to each receiver stays. What handlers send
/// meanwhile comes behind. What a handler throws reaches the caller, and its message is handled.
std::size_t ControlChannel::poll() {
  if (waiting_.empty() || polling_) return 0;
  const ScopedFlag polling(polling_);
  std::size_t done = 0, kept = 0;  // messages that wait on are the first ones
  std::vector<bool> full(ranks_);
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    DUNLIN_ASSERT(kept + left <= waiting_.size(), "only poll() takes messages out of the queue");
    const auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(kept);
    const Waiting next = *at;
    const auto content = std::span(next.content).first(next.bytes);
    const bool is_own = next.to == fabric_.rank();
    if (!is_own &&
        (full[next.to] || fabric_.send(next.to, channel_, content) == Refusal::queue_full)) {
      full[next.to] = true;
      ++kept;
      continue;
    }
    waiting_.erase(at);
    if (is_own) handler_(next.to, content);
    ++done;
  }
  return done;
}

}  // namespace dunlin::remote
