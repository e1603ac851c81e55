#include <array>
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

HeldMemory State::take_memory() { return {spare_memory.take().release(), GiveBack{this}}; }

/// One member after the other; those that are gone have no keys.
Protocol<CallResult> State::count_keys() {
  CallResult result;
  for (Rank home = 0; home < places; ++home) {
    const bool has_none =
        fault(home) == Status::lost || homes[home].is_client ||
        (home >= members && !has_got_keys(home) && !fabric.connected(home, index.id()));
    if (has_none) continue;
    std::array<std::uint64_t, 2> words{};  // keys, bytes of values
    auto reading = remote::post(fabric, read(home, index.id(), kKeysAt, words.data(), sizeof words),
                                HomeGate{this, home, &result.round_trips});
    result.status = co_await reading;
    if (result.status != Status::ok) co_return result;
    if (static_cast<std::int64_t>(words[0]) > 0) result.keys += words[0];
  }
  std::uint32_t there = 0;
  for (Rank rank = 0; rank < members; ++rank) there += fault(rank) == Status::lost ? 0 : 1;
  if (has_copies() && there > 1) result.keys /= 2;
  co_return result;
}

StoreOperation State::begin_count() {
  ++counters.others;
  return StoreOperation(progress, count_keys());
}

/// Waits for what Departure does.
Protocol<CallResult> State::await_leave() {
  CallResult result{.status = Status::not_allowed};
  if (departure == nullptr) co_return result;
  co_await remote::Until([this] { return departure->status() != Status::under_way; });
  result.status = departure->status();
  co_return result;
}

/// Waits for what Arrival does.
Protocol<CallResult> State::await_keys() {
  CallResult result{.status = Status::not_allowed};
  if (arrival == nullptr) co_return result;
  co_await remote::Until([this] { return arrival->status() != Status::under_way; });
  result.status = arrival->status();
  co_return result;
}

StoreOperation State::begin_leave() {
  ++counters.others;
  if (departure != nullptr && !progress.stopped()) departure->begin();
  return StoreOperation(progress, await_leave());
}

StoreOperation State::begin_take() {
  ++counters.others;
  if (arrival != nullptr && !progress.stopped()) arrival->begin();
  return StoreOperation(progress, await_keys());
}

}  // namespace store
}  // namespace dunlin
