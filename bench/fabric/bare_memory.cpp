#include <atomic>
#include <cstring>

#include "bench/fabric/bare.hpp"
#include "bench/harness/bare.hpp"

namespace dunlin::bench {
namespace {

using Word = std::atomic_ref<std::uint64_t>;

// Places in the arena, behind those of bare::ping_pong.
constexpr std::size_t kSource = std::size_t{1} << 20;
constexpr std::size_t kTarget = std::size_t{2} << 20;
constexpr std::size_t kTargetBytes = std::size_t{1} << 20;
constexpr std::size_t kWords = std::size_t{3} << 20;
constexpr std::size_t kPitch = 4096;

std::uint64_t& word(Member& me, std::size_t index) {
  return *reinterpret_cast<std::uint64_t*>(me.arena().data() + kWords + index * kPitch);
}

class BareMemory final : public Bare {
 public:
  Time one_way(Member& me, const Batches& plan, std::size_t bytes) override {
    return bare::ping_pong(me, plan, bare::Spin::tight, bytes);
  }

  Time fetch(Member& me, const Batches& plan, std::size_t bytes) override {
    if (me.rank() != 0) return std::nullopt;
    std::vector<std::byte> here(bytes);
    const std::byte* const there = me.arena().data() + kSource;
    return batch_ns(plan, [&] {
      std::memcpy(here.data(), there, bytes);
      asm volatile("" : : "r"(here.data()) : "memory");
    });
  }

  Time add(Member& me, const Batches& plan, Atomics how) override {
    const Word target(word(me, 0));
    const Word over(word(me, 1));
    const std::uint64_t turn = over.load() + 1;
    me.meet();
    if (me.rank() != 0) {
      while (how == Atomics::contended && over.load() < turn) target.fetch_add(1);
      return std::nullopt;
    }
    const double ns = batch_ns(plan, [&] { target.fetch_add(1); });
    if (how == Atomics::contended) over.store(turn);
    return ns;
  }

  Time stream(Member& me, std::size_t bytes, std::uint32_t items, std::uint32_t) override {
    const Word seen(word(me, 2));
    const Word done(word(me, 3));
    const std::uint64_t turn = done.load() + 1;
    me.meet();
    if (me.rank() != 0) {
      while (done.load(std::memory_order_acquire) < turn) relax();
      seen.store(turn);
      return std::nullopt;
    }
    const std::vector<std::byte> from(bytes, std::byte{1});
    const double start = now_ns();
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < items; ++i) {
      if (at + bytes > kTargetBytes) at = 0;
      std::memcpy(me.arena().data() + kTarget + at, from.data(), bytes);
      asm volatile("" : : : "memory");
      at += bytes;
    }
    done.store(turn, std::memory_order_release);
    while (seen.load() < turn) relax();
    return (now_ns() - start) / items;
  }

  Time spread(Member& me, const Batches& plan, std::uint32_t places) override {
    if (me.rank() != 0) return std::nullopt;
    return bare::fan_out(plan, me.arena().subspan(kTarget), 8, places);
  }
};

}  // namespace

std::unique_ptr<Bare> bare_memory(Member&, const std::string&) {
  return std::make_unique<BareMemory>();
}

}  // namespace dunlin::bench
