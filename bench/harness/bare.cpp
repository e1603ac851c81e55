#include "bench/harness/bare.hpp"

#include <atomic>
#include <climits>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::bench::bare {
namespace {

using Word = std::atomic_ref<std::uint64_t>;

/// The pages of the arena that each bare operation has to itself, so that none inherits counts
/// from another. Each member's side lies on pages of its own, as its segment would.
constexpr std::size_t kSide = 128 * 1024;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPayloadAt = kPage;

struct Side {
  std::byte* payload;
  std::uint64_t* flag;
};

Side side(const Member& me, std::uint32_t rank) {
  std::byte* const start = me.arena().data() + rank * kSide;
  return {start + kPayloadAt, reinterpret_cast<std::uint64_t*>(start)};
}

void wait_for(std::uint64_t* flag, std::uint64_t value, Spin spin) {
  if (spin == Spin::pause) {
    while (Word(*flag).load(std::memory_order_acquire) < value) relax();
  } else {
    while (Word(*flag).load(std::memory_order_acquire) < value) {
    }
  }
}

void signal(const Side& to, std::span<const std::byte> payload, std::uint64_t value) {
  if (!payload.empty()) std::memcpy(to.payload, payload.data(), payload.size());
  Word(*to.flag).store(value, std::memory_order_release);
}

long futex(std::uint32_t* word, int operation, std::uint32_t value) {
  return ::syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

void sleep_until(std::uint32_t* word, std::uint32_t value) {
  const std::atomic_ref<std::uint32_t> flag(*word);
  for (std::uint32_t seen = flag.load(); seen != value; seen = flag.load()) {
    futex(word, FUTEX_WAIT, seen);
  }
}

void wake(std::uint32_t* word, std::uint32_t value) {
  std::atomic_ref<std::uint32_t>(*word).store(value);
  futex(word, FUTEX_WAKE, INT_MAX);
}

}  // namespace

std::optional<double> ping_pong(Member& me, const Batches& plan, Spin spin, std::size_t bytes) {
  if (bytes > kSide - kPayloadAt) {
    throw Error("bench: the bare ping-pong has room for " + std::to_string(kSide - kPayloadAt) +
                " bytes, not " + std::to_string(bytes));
  }
  if (me.rank() > 1) return me.meet(), std::nullopt;
  const Side ours = side(me, me.rank());
  const Side theirs = side(me, 1 - me.rank());
  const std::vector<std::byte> payload(bytes, std::byte{1});
  std::uint64_t value = Word(*ours.flag).load();
  me.meet();
  if (me.rank() == 0) {
    const double round_trip = batch_ns(plan, [&] {
      signal(theirs, payload, ++value);
      wait_for(ours.flag, value, spin);
    });
    return round_trip / 2;
  }
  for (std::uint64_t i = 0; i < plan.total(); ++i) {
    wait_for(ours.flag, ++value, spin);
    signal(theirs, payload, value);
  }
  return std::nullopt;
}

std::optional<double> count_in_step(Member& me, const Batches& plan, Spin spin) {
  const Side ours = side(me, me.rank());
  const Side theirs = side(me, 1 - me.rank());
  std::uint64_t value = Word(*ours.flag).load();
  me.meet();
  const double step = batch_ns(plan, [&] {
    Word(*theirs.flag).store(++value, std::memory_order_release);
    wait_for(ours.flag, value, spin);
  });
  return me.rank() == 0 ? std::optional(step) : std::nullopt;
}

std::optional<double> wake_by_futex(Member& me, std::uint32_t wakes) {
  auto* const doorbell = reinterpret_cast<std::uint32_t*>(me.arena().data() + 4 * kSide);
  std::uint64_t* const answer = side(me, 5).flag;  // its own: flags 0 and 1 advance together
  std::uint64_t value = Word(*answer).load();
  std::uint32_t rung = std::atomic_ref<std::uint32_t>(*doorbell).load();
  me.meet();
  if (me.rank() == 1) {
    for (std::uint32_t i = 0; i < wakes; ++i) {
      sleep_until(doorbell, ++rung);
      Word(*answer).store(++value, std::memory_order_release);
    }
    return std::nullopt;
  }
  std::vector<double> times(wakes);
  for (double& time : times) {
    spin_for(kUntilAsleepNs);
    const double start = now_ns();
    wake(doorbell, ++rung);
    wait_for(answer, ++value, Spin::pause);
    time = now_ns() - start;
  }
  std::ranges::nth_element(times, times.begin() + wakes / 2);
  return times[wakes / 2];
}

double scan_words(const Batches& plan, std::span<const std::byte> memory, std::size_t lines,
                  std::size_t pitch) {
  const std::byte* const start = memory.data();
  std::uint32_t fewer = 0;
  const double ns = batch_ns(plan, [&] {
    std::uint32_t zeros = 0;
    for (std::size_t i = 0; i < lines; ++i) {
      zeros += __atomic_load_n(reinterpret_cast<const std::uint32_t*>(start + i * pitch),
                               __ATOMIC_ACQUIRE) == 0;
    }
    fewer += zeros;
    asm volatile("" : : "r"(fewer) : "memory");
  });
  return ns;
}

double scan_bytes(const Batches& plan, std::span<const std::byte> memory, std::size_t bytes) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(memory.data());
  return batch_ns(plan, [&] {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes / 8; ++i) sum += words[i];
    asm volatile("" : : "r"(sum) : "memory");
  });
}

double test_and_count(const Batches& plan, std::span<std::byte> memory) {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
  Word(words[0]).store(1);
  return batch_ns(plan, [&] {
    if (Word(words[0]).load(std::memory_order_acquire) == 1) ++words[16];
    asm volatile("" : : : "memory");
  });
}

double fan_out(const Batches& plan, std::span<std::byte> memory, std::size_t bytes,
               std::size_t copies) {
  const std::size_t pitch = std::max<std::size_t>(round_up(bytes, kPage), kPage);
  const std::vector<std::byte> source(bytes, std::byte{1});
  return batch_ns(plan, [&] {
    for (std::size_t i = 0; i < copies; ++i) {
      std::memcpy(memory.data() + i * pitch, source.data(), bytes);
      asm volatile("" : : : "memory");
    }
  });
}

}  // namespace dunlin::bench::bare
