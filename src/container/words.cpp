#include <cstring>
#include <utility>

#include <dunlin/container/words.hpp>
#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/hub.hpp"
#include "container/steps.hpp"
#include "fabric/thread_guard.hpp"
#include "remote/control_channel.hpp"

namespace dunlin {

using remote::Protocol;
using remote::Status;

namespace container {

struct WordsState {
  WordsState(Containers& its_containers, const std::string& kind, const std::string& name,
             std::uint64_t bytes, const std::string& layout, std::uint64_t capacity)
      : containers(its_containers),
        hub(its_containers.hub()),
        progress(hub.progress),
        site(hub, kind, name, hub.is_founder(hub.fabric.rank()) ? bytes : kCacheLineBytes,
             kind + "\n" + layout),
        counters(hub.counters, kind, name, capacity, nullptr) {
    site.announce();
  }

  /// The bytes at that place, if they are mapped here; else null.
  [[nodiscard]] std::byte* at(Rank home, std::uint64_t offset, std::size_t bytes) noexcept;
  [[nodiscard]] Protocol<ReadBytes> read(Rank home, std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] Protocol<Status> write(Rank home, std::uint64_t offset, CallMemory memory,
                                       std::size_t bytes);
  [[nodiscard]] Protocol<Added> add(Rank home, std::uint64_t offset, std::uint64_t value);
  [[nodiscard]] Protocol<MaybePresent> set_bits(Rank home, std::uint64_t offset,
                                                std::uint64_t bits);
  [[nodiscard]] Protocol<MaybePresent> has_bits(Rank home, std::uint64_t offset,
                                                std::uint64_t bits);
  [[nodiscard]] Protocol<CounterValue> sum(Rank first, Rank last, std::uint64_t offset);

  Containers& containers;
  Hub& hub;
  remote::Progress& progress;
  Site site;
  ContainerCounters counters;
  remote::FramePool memory_of_calls;
};

WordsCore::WordsCore(Containers& containers, const std::string& kind, const std::string& name,
                     std::uint64_t bytes, const std::string& layout, std::uint64_t capacity) {
  check_name(kind, name);
  if (bytes == 0 || bytes > kMaxRegionBytes)
    throw Error(kind + " '" + name + "': a member's part has 1 to " +
                std::to_string(kMaxRegionBytes) + " bytes (kMaxRegionBytes)");
  state_ = std::make_unique<WordsState>(containers, kind, name, bytes, layout, capacity);
}

WordsCore::~WordsCore() = default;
Containers& WordsCore::containers() const noexcept { return state_->containers; }
std::span<std::byte> WordsCore::own() const noexcept { return state_->site.own(); }

// --- the protocols -------------------------------------------------------------------------------

Protocol<ReadBytes> WordsState::read(Rank home, std::uint64_t offset, std::size_t bytes) {
  CallMemory memory(memory_of_calls, bytes);
  if (memory.data() == nullptr) co_return ReadBytes{Status::no_memory};
  const Status status =
      co_await post(site, dunlin::read(home, site.region(), offset, memory.data(), bytes));
  co_return ReadBytes{status, std::move(memory)};
}

Protocol<Status> WordsState::write(Rank home, std::uint64_t offset, CallMemory memory,
                                   std::size_t bytes) {
  const Status status =
      co_await post(site, dunlin::write(home, site.region(), offset, memory.data(), bytes));
  co_return status;
}

Protocol<Added> WordsState::add(Rank home, std::uint64_t offset, std::uint64_t value) {
  std::uint64_t before = 0;
  DUNLIN_ASSERT(offset % kWordBytes == 0, "FAB-M1: a word that is added to is aligned");
  const Status status = co_await post(site, fetch_add(home, site.region(), offset, value, &before));
  co_return Added{{status, before}};
}

/// A compare-and-swap that fails has read the word.
Protocol<MaybePresent> WordsState::set_bits(Rank home, std::uint64_t offset, std::uint64_t bits) {
  DUNLIN_ASSERT(offset % kWordBytes == 0 && bits != 0, "CON-P1: a key has bits in one word");
  for (std::uint64_t expected = 0;;) {
    std::uint64_t before = 0;
    const Status status = co_await post(
        site, compare_swap(home, site.region(), offset, expected, expected | bits, &before));
    if (status != Status::ok) co_return MaybePresent{status};
    const bool were_there = (before & bits) == bits;
    if (before == expected || were_there) co_return MaybePresent{status, were_there};
    expected = before;
    DUNLIN_ASSERT((expected | bits) != expected,
                  "CON-P1: who sets a bit is told that it was not set");
  }
}

Protocol<MaybePresent> WordsState::has_bits(Rank home, std::uint64_t offset, std::uint64_t bits) {
  std::uint64_t word = 0;
  const Status status =
      co_await post(site, dunlin::read(home, site.region(), offset, &word, kWordBytes));
  co_return MaybePresent{status, (word & bits) == bits};
}

Protocol<CounterValue> WordsState::sum(Rank first, Rank last, std::uint64_t offset) {
  DUNLIN_ASSERT(first <= last && last < progress.capacity(), "a sum is over members' words");
  std::uint64_t all = 0;
  for (Rank rank = first; rank <= last; ++rank) {
    std::uint64_t word = 0;
    const Status status =
        co_await post(site, dunlin::read(rank, site.region(), offset, &word, kWordBytes));
    if (status != Status::ok) co_return CounterValue{{status}};
    all += word;
  }
  co_return CounterValue{{Status::ok, all}};
}

// --- the calls -----------------------------------------------------------------------------------

std::byte* WordsState::at(Rank home, std::uint64_t offset, std::size_t bytes) noexcept {
  DUNLIN_ONE_THREAD(&hub.fabric);
  if (progress.was_stopped() || !hub.fabric.properties().atomics_coherent_with_cpu) return nullptr;
  const std::size_t size = site.own().size();  // as at all members
  if (home >= progress.capacity() || offset > size || bytes > size - offset) return nullptr;
  std::byte* const there = site.mapped(home, size);
  return there != nullptr ? there + offset : nullptr;
}

bool WordsCore::read_at_once(Rank home, std::uint64_t offset, void* memory,
                             std::size_t bytes) noexcept {
  ++state_->counters.one_sided;
  const std::byte* const from = state_->at(home, offset, bytes);
  if (from != nullptr) memory::fetch(memory, from, bytes);
  return from != nullptr;
}

Protocol<ReadBytes> WordsCore::read(Rank home, std::uint64_t offset, std::size_t bytes) {
  return state_->read(home, offset, bytes);
}

remote::Call<Status> WordsCore::write(Rank home, std::uint64_t offset, const void* memory,
                                      std::size_t bytes) {
  WordsState& words = *state_;
  ++words.counters.one_sided;
  if (std::byte* const to = words.at(home, offset, bytes); to != nullptr) {
    memory::place(to, memory, bytes);
    words.hub.fabric.ring(home);
    return {words.progress, Status::ok};
  }
  CallMemory copy(words.memory_of_calls, bytes);
  if (copy.data() == nullptr) return {words.progress, Status::no_memory};
  std::memcpy(copy.data(), memory, bytes);
  return {words.progress, words.write(home, offset, std::move(copy), bytes)};
}

remote::Call<Added> WordsCore::add(Rank home, std::uint64_t offset, std::uint64_t value) {
  WordsState& words = *state_;
  ++words.counters.one_sided;
  if (std::byte* const word = words.at(home, offset, kWordBytes); word != nullptr) {
    const std::uint64_t before = memory::fetch_add(word, value);
    words.hub.fabric.ring(home);
    return {words.progress, Added{{Status::ok, before}}};
  }
  return {words.progress, words.add(home, offset, value)};
}

remote::Call<MaybePresent> WordsCore::set_bits(Rank home, std::uint64_t offset,
                                               std::uint64_t bits) {
  WordsState& words = *state_;
  ++words.counters.one_sided;
  if (std::byte* const word = words.at(home, offset, kWordBytes); word != nullptr) {
    std::uint64_t before = memory::load(*reinterpret_cast<const std::uint64_t*>(word));
    if ((before & bits) != bits) {
      before = memory::fetch_or(word, bits);
      words.hub.fabric.ring(home);
    }
    return {words.progress, MaybePresent{Status::ok, (before & bits) == bits}};
  }
  return {words.progress, words.set_bits(home, offset, bits)};
}

remote::Call<MaybePresent> WordsCore::has_bits(Rank home, std::uint64_t offset,
                                               std::uint64_t bits) {
  std::uint64_t word = 0;
  if (read_at_once(home, offset, &word, kWordBytes))
    return {state_->progress, MaybePresent{Status::ok, (word & bits) == bits}};
  return {state_->progress, state_->has_bits(home, offset, bits)};
}

remote::Call<CounterValue> WordsCore::sum(Rank first, Rank last, std::uint64_t offset) {
  WordsState& words = *state_;
  DUNLIN_ASSERT(first <= last && last < state_->progress.capacity(), "a sum is over members");
  ++words.counters.one_sided;
  CounterValue all;
  for (Rank rank = first; rank <= last; ++rank) {
    const std::byte* const word = words.at(rank, offset, kWordBytes);
    if (word == nullptr) return {words.progress, words.sum(first, last, offset)};
    all.word += memory::load(*reinterpret_cast<const std::uint64_t*>(word));
  }
  return {words.progress, all};
}

}  // namespace container

Counter::Counter(Containers& containers, const CounterOptions& options)
    : options_(options),
      core_(containers, "counter", options.name, kWordBytes,
            options.sharded ? "sharded" : "host " + std::to_string(options.host), 1) {
  if (!options.sharded && options.host >= containers.fabric().size())
    throw Error("counter '" + options.name + "': the group has no member " +
                std::to_string(options.host));
}

remote::Call<container::Added> Counter::add(std::uint64_t value) {
  const Rank self = core_.containers().fabric().rank();  // a later member adds to a founder's word
  return core_.add(options_.sharded ? self % core_.members() : options_.host, 0, value);
}

remote::Call<container::CounterValue> Counter::read() {
  if (options_.sharded) return core_.sum(0, core_.members() - 1, 0);
  return core_.sum(options_.host, options_.host, 0);
}

}  // namespace dunlin
