#include "bench/multicast/bare_stream.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bench/harness/clock.hpp"
#include "bench/multicast/patience.hpp"

namespace dunlin::bench {
namespace {

using Word = std::atomic_ref<std::uint64_t>;

// Places in the arena, behind those of bare::ping_pong.
constexpr std::size_t kWords = std::size_t{512} << 10;
constexpr std::size_t kRings = std::size_t{1} << 20;
constexpr std::size_t kPitch = 128;
/// Between two looks at the other side; counted once.
constexpr std::size_t kBytesAtOnce = 16'384;
constexpr std::uint64_t kMostAtOnce = 256;

static_assert(kWords + 2 * kMostStreamMembers * kMostStreamMembers * kPitch <= kRings);

std::size_t ring_share(std::size_t ring_bytes, std::uint32_t members) noexcept {
  return std::min(ring_bytes, (kArenaBytes - kRings) / (members * (members - 1)) / 64 * 64);
}

}  // namespace

std::size_t largest_in_bare_stream(std::uint32_t members) noexcept {
  return ring_share(SIZE_MAX, members);
}

BareStream::BareStream(Member& me, std::uint32_t senders, std::size_t bytes, std::size_t ring_bytes)
    : me_(me),
      senders_(senders),
      bytes_(bytes),
      slots_(ring_share(ring_bytes, me.size()) / bytes),
      ring_bytes_(ring_share(ring_bytes, me.size())),
      source_(ring_bytes_, std::byte{1}),
      seen_(me.size()) {}

std::uint64_t& BareStream::written(std::uint32_t from, std::uint32_t to) const noexcept {
  const std::size_t index = from * kMostStreamMembers + to;
  return *reinterpret_cast<std::uint64_t*>(me_.arena().data() + kWords + 2 * index * kPitch);
}

std::uint64_t& BareStream::taken(std::uint32_t from, std::uint32_t to) const noexcept {
  const std::size_t index = from * kMostStreamMembers + to;
  return *reinterpret_cast<std::uint64_t*>(me_.arena().data() + kWords + (2 * index + 1) * kPitch);
}

std::byte* BareStream::ring(std::uint32_t from, std::uint32_t to) const noexcept {
  const std::size_t index = from * (me_.size() - 1) + (to < from ? to : to - 1);
  return me_.arena().data() + kRings + index * ring_bytes_;
}

bool BareStream::send(std::uint64_t goal) noexcept {
  std::uint64_t free = UINT64_MAX;
  for (std::uint32_t to = 0; to < me_.size(); ++to) {
    if (to == me_.rank()) continue;
    const std::uint64_t done = Word(taken(me_.rank(), to)).load(std::memory_order_acquire);
    free = std::min(free, slots_ - (sent_ - done));
  }
  const std::uint64_t at_once = std::clamp(kBytesAtOnce / bytes_, std::size_t{1}, kMostAtOnce);
  const std::uint64_t now = std::min({free, goal - sent_, at_once});
  for (std::uint64_t i = 0; i < now; ++i, ++sent_) {
    for (std::uint32_t to = 0; to < me_.size(); ++to) {
      if (to == me_.rank()) continue;
      const std::size_t at = sent_ % slots_ * bytes_;
      std::memcpy(ring(me_.rank(), to) + at, source_.data() + at, bytes_);
    }
  }
  for (std::uint32_t to = 0; to < me_.size() && now > 0; ++to)
    if (to != me_.rank()) Word(written(me_.rank(), to)).store(sent_, std::memory_order_release);
  return now > 0;
}

bool BareStream::receive() noexcept {
  bool some = false;
  for (std::uint32_t from = 0; from < senders_; ++from) {
    if (from == me_.rank()) continue;
    const std::uint64_t count = Word(written(from, me_.rank())).load(std::memory_order_acquire);
    if (count == seen_[from]) continue;
    for (; seen_[from] < count; ++seen_[from])
      look_at({ring(from, me_.rank()) + seen_[from] % slots_ * bytes_, bytes_});
    Word(taken(from, me_.rank())).store(count, std::memory_order_release);
    some = true;
  }
  return some;
}

bool BareStream::all_taken() const noexcept {
  for (std::uint32_t to = 0; to < me_.size(); ++to) {
    if (to != me_.rank() && Word(taken(me_.rank(), to)).load() < sent_) return false;
  }
  return true;
}

std::optional<double> BareStream::round(std::uint64_t messages) {
  const bool sends = me_.rank() < senders_;
  const std::uint64_t goal = seen_[me_.rank()] + messages;  // of each sender, since the beginning
  seen_[me_.rank()] = goal;
  me_.meet();
  const double start = now_ns();
  const auto arrived = [&] {
    for (std::uint32_t from = 0; from < senders_; ++from)
      if (seen_[from] < goal) return false;
    return true;
  };
  Patience patience;
  while ((sends && (sent_ < goal || !all_taken())) || !arrived()) {
    bool some = sends && sent_ < goal && send(goal);
    some |= receive();
    patience.after(some);
  }
  const double seconds = (now_ns() - start) / 1e9;
  if (me_.rank() != 0) return std::nullopt;
  return static_cast<double>(messages * senders_) / seconds;
}

}  // namespace dunlin::bench
