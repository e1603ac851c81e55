#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "store/state.hpp"

/// Calls on a store that are not about one key, and the memory of all calls.
namespace dunlin {

std::span<const std::byte> StoreOperation::key() const noexcept {
  const store::CallMemory* const memory = result().memory.get();
  if (memory == nullptr) return {};
  return {memory->key.data(), memory->key_bytes};
}

namespace store {

using remote::Protocol;
using remote::Status;

void GiveBack::operator()(CallMemory* memory) const noexcept {
  state->spare_memory.give_back(std::unique_ptr<CallMemory>(memory));
}

namespace {

/// Members that have no room look for it again within a second.
constexpr std::uint64_t kFullNs = 2'500'000'000;
/// Whether all is settled takes a look at each slot, so those who wait look seldom.
constexpr std::uint64_t kPausesOfSettling = 16;

}  // namespace

HeldMemory State::take_memory() { return {spare_memory.take().release(), GiveBack{this}}; }

/// One member after the other; those that are gone have no keys. Each key is counted as often as
/// its slot has copies, which is the same for all slots once nothing moves.
Protocol<CallResult> State::count_keys() {
  CallResult result;
  Rest rest;
  while (!map().created()) {
    result.status = why_closed(0);
    if (result.status != Status::busy) co_return result;
    co_await rest.next(fabric);
  }
  std::uint64_t copies = 0, slots = 0;
  for (std::uint32_t number = 0; number < map().slots(); ++number) {
    copies += map().slot(number).full_copies();
    slots += map().slot(number).lost() ? 0 : 1;
  }
  std::vector<Rank> holders;
  for (const Holder& one : map().members()) holders.push_back(one.rank);
  for (const Rank home : holders) {
    const bool has_none = fault(home) == Status::lost || homes[home].is_client ||
                          (home >= members && slots_with_part_of(home) == 0);
    if (has_none) continue;
    std::array<std::uint64_t, 2> words{};  // keys, bytes of values
    auto reading = remote::post(fabric, read(home, index.id(), kKeysAt, words.data(), sizeof words),
                                HomeGate{this, home, &result.round_trips});
    result.status = co_await reading;
    if (result.status != Status::ok) co_return result;
    if (static_cast<std::int64_t>(words[0]) > 0) result.keys += words[0];
  }
  if (copies > slots) result.keys = (result.keys * slots + copies / 2) / copies;
  co_return result;
}

StoreOperation State::begin_count() {
  ++counters.others;
  return StoreOperation(progress, count_keys());
}

/// STO-M6. Until no other member asks this one any more, and it has no key.
Protocol<CallResult> State::await_leave() {
  if (mover == nullptr) co_return CallResult{.status = Status::not_allowed};
  Rest rest;
  while (!map().created()) {
    const Status why = why_closed(0);
    if (why != Status::busy) co_return CallResult{.status = why};
    co_await rest.next(fabric);
  }
  placement->set_weight(0);
  std::uint64_t since_ns = fabric.now_ns();
  std::uint32_t had = UINT32_MAX;
  for (;;) {
    const Holder* const own = map().member(fabric.rank());
    // What it said before may not be decided yet.
    const bool drains = map().created() && own != nullptr && own->weight == 0 &&
                        placement->weight() == 0 && placement->has_said_all();
    const std::uint32_t has = slots_with_part_of(fabric.rank());
    if (drains && has == 0) co_return CallResult{};
    if (has != std::exchange(had, has)) since_ns = fabric.now_ns();
    Status why = Status::ok;
    if (some_are_full() && fabric.now_ns() - since_ns > kFullNs) why = Status::no_room;
    if (!map().may_drain(fabric.rank()) || placement->weight() > 0) why = Status::not_allowed;
    if (!placement->why_stopped().empty()) why = Status::stopped;
    if (why != Status::ok) {
      if (placement->weight() == 0) placement->set_weight(usual_weight());
      co_return CallResult{.status = why};
    }
    co_await rest.next(fabric);
  }
}

Protocol<CallResult> State::await_settled() {
  Rest rest;
  while (!is_settled()) {
    const Status why = map().created() ? Status::busy : why_closed(0);
    if (placement != nullptr && !placement->why_stopped().empty())
      co_return CallResult{.status = Status::stopped};
    if (why != Status::busy) co_return CallResult{.status = why};
    co_await rest.next(fabric, kPausesOfSettling);
  }
  co_return CallResult{};
}

StoreOperation State::begin_leave() {
  ++counters.others;
  return StoreOperation(progress, await_leave());
}

StoreOperation State::begin_settle() {
  ++counters.others;
  return StoreOperation(progress, await_settled());
}

}  // namespace store
}  // namespace dunlin
