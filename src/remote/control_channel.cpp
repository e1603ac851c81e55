#include "remote/control_channel.hpp"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "scoped_flag.hpp"

namespace dunlin::remote {

/// Messages that have memory although they do not wait; what a burst has taken beyond goes back.
constexpr std::size_t kMostSpare = 64;

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
  if (spare_.empty()) spare_.emplace_back();
  waiting_.splice(waiting_.end(), spare_, spare_.begin());
  Waiting& last = waiting_.back();
  last.to = to;
  last.bytes = message.size();
  std::memcpy(last.content.data(), message.data(), message.size());
}

bool ControlChannel::expect_send() noexcept {
  try {
    if (spare_.empty()) spare_.emplace_back();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Each message that waits has one try; the order to each receiver stays. What handlers send
/// meanwhile comes behind. What a handler throws reaches the caller, and its message is handled.
std::size_t ControlChannel::poll() {
  if (waiting_.empty() || polling_) return 0;
  const ScopedFlag polling(polling_);
  std::size_t done = 0;
  std::vector<bool> full(ranks_);
  auto at = waiting_.begin();
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    DUNLIN_ASSERT(at != waiting_.end(), "only poll() takes messages out of the queue");
    const auto tried = at++;
    const Waiting next = *tried;
    const auto content = std::span(next.content).first(next.bytes);
    const bool is_own = next.to == fabric_.rank();
    if (!is_own &&
        (full[next.to] || fabric_.send(next.to, channel_, content) == Refusal::queue_full)) {
      full[next.to] = true;
      continue;
    }
    if (spare_.size() < kMostSpare)
      spare_.splice(spare_.end(), waiting_, tried);
    else
      waiting_.erase(tried);
    if (is_own) handler_(next.to, content);
    ++done;
  }
  return done;
}

}  // namespace dunlin::remote
