#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "assert.hpp"
#include "container/map.hpp"

/// Calls on a map with a pool.
namespace dunlin::container {

namespace {

/// The core's call: a call that may replace a reference learns of the former value.
constexpr MapCall core_call(MapCall call) noexcept {
  if (call == MapCall::assign) return MapCall::exchange;
  return call == MapCall::erase ? MapCall::take : call;
}

/// Notes when a block is written and linked, as far as the order of what follows goes.
struct StoreGate : SiteGate {
  bool* is_linked;
  void accepted(std::size_t posted) const noexcept { *is_linked = posted == 2; }
};

}  // namespace

// --- a call and its caller -----------------------------------------------------------------------

Caller::~Caller() {
  if (call == nullptr) return;
  call->caller = nullptr;
  call->is_given_up = true;
}

PooledCall::PooledCall(ValuePool& its_pool, Caller* its_caller, MapCall its_call,
                       Promise its_promise, Style its_style, const std::byte* key,
                       std::span<const std::byte> value)
    : pool(its_pool),
      caller(its_caller),
      call(core_call(its_call)),
      promise(its_promise),
      style(its_style) {
  MapState& map = pool.map_;
  const std::uint32_t key_bytes = map.spec.key_bytes;
  home = map.home_of(hash_of(key, key_bytes));
  payload = CallMemory(map.buffers, std::size_t{key_bytes} + map.spec.value_bytes);
  if (payload.data() == nullptr) throw std::bad_alloc();
  std::memcpy(payload.data(), key, key_bytes);
  if (takes_slot(call) && !pool.put_inline(value, payload.data() + key_bytes)) {
    own = {.stamp = pool.next_stamp(), .bytes = static_cast<std::uint32_t>(value.size())};
    const SlotShape shape = block_shape(own.bytes);
    image = CallMemory(map.buffers, shape.slot_bytes);
    if (image.data() == nullptr) throw std::bad_alloc();
    encode(shape, value.data(), own.stamp, image.data());
  }
  pool.reserve_frees();
  ++pool.calls_;
  if (caller != nullptr) caller->call = this;
}

PooledCall::~PooledCall() {
  if (caller != nullptr) caller->call = nullptr;
  DUNLIN_ASSERT(pool.calls_ > 0, "CON-V5: each call is counted once");
  --pool.calls_;
  if (!block || may_be_referred) return;
  if (is_linked)
    pool.free(*block);
  else
    pool.slabs_.cancel(*block);
}

bool ValuePool::put_inline(std::span<const std::byte> value, std::byte* cell) const noexcept {
  const std::size_t room = map_.spec.value_bytes;
  std::memset(cell, 0, room);
  if (value.size() + kLengthBytes > room) return false;
  const auto length = static_cast<std::uint16_t>(value.size());
  std::memcpy(cell, &length, kLengthBytes);
  if (length > 0) std::memcpy(cell + kLengthBytes, value.data(), length);
  return true;
}

// --- the way of a call ---------------------------------------------------------------------------

std::optional<PooledResult> MapCore::at_once_pooled(MapCall call, Promise promise, Style style,
                                                    std::byte* payload,
                                                    std::span<const std::byte> value) {
  try {
    return state_->values->at_once(call, promise, style, payload, value);
  } catch (const std::bad_alloc&) {
    return PooledResult{Status::no_memory};
  }
}

Protocol<PooledResult> MapCore::run_pooled(MapCall call, Promise promise, Style style,
                                           const std::byte* key, std::span<const std::byte> value) {
  return state_->values->run(call, promise, style, key, value);
}

std::optional<PooledResult> ValuePool::at_once(MapCall call, Promise promise, Style style,
                                               std::byte* payload,
                                               std::span<const std::byte> value) {
  std::byte* const cell = payload + map_.spec.key_bytes;
  if (takes_slot(call) && !put_inline(value, cell)) return std::nullopt;
  reserve_frees();
  const MapApplied done = map_.begin(core_call(call), promise, style, payload);
  if (done.is_again()) return std::nullopt;
  PooledResult result{.status = done.status(), .found = done.found()};
  if (!done.found()) return result;
  const Rank home = map_.home_of(hash_of(payload, map_.spec.key_bytes));
  if (needs_pool(core_call(call))) {
    if (const auto former = reference_in(cell)) free(home, *former);
    return result;
  }
  std::span<const std::byte> content(cell, map_.spec.value_bytes);
  if (!resolve(home, result.value, content)) return std::nullopt;
  if (content.data() != result.value.data()) result.value.assign(content.begin(), content.end());
  return result;
}

Protocol<PooledResult> ValuePool::run(MapCall call, Promise promise, Style style,
                                      const std::byte* key, std::span<const std::byte> value) {
  if (call == MapCall::find) {
    PooledCall one(*this, nullptr, call, promise, style, key, value);
    PooledResult result = co_await execute(one);
    co_return std::move(result);
  }
  Caller caller;
  protocols_.start(lead(caller, call, promise, style, key, value));
  co_await remote::Until([&] { return caller.call == nullptr; });
  co_return std::move(caller.result);
}

/// Nobody waits for this one, so it frees the block that is not referred to, also if its caller has
/// gone in the meantime.
Protocol<Status> ValuePool::lead(Caller& caller, MapCall call, Promise promise, Style style,
                                 const std::byte* key, std::span<const std::byte> value) {
  PooledCall one(*this, &caller, call, promise, style, key, value);
  PooledResult result = co_await execute(one);
  const Status status = result.status;
  if (one.caller != nullptr) one.caller->result = std::move(result);
  co_return status;
}

/// The block of a long value, the call on the core, and the block of the value that was found.
Protocol<PooledResult> ValuePool::execute(PooledCall& one) {
  PooledResult result;
  remote::Batch<2, StoreGate> store(map_.hub.fabric,
                                    StoreGate{map_.first.site.gate(one.home), &one.is_linked});
  if (one.own.bytes != 0) {
    result.status = co_await allocate(one);
    if (result.status != Status::ok) co_return std::move(result);
    store.add(write(one.home, slabs_.region(), one.block->offset, one.image.data(),
                    block_shape(one.own.bytes).slot_bytes));
    store.add(slabs_.link(*one.block));
    // CON-V4: what the call on the core posts, or sends, comes behind these (FAB-F1). Only a call
    // on the own part posts nothing.
    const bool waits = one.home == map_.self;
    co_await remote::Until([&] { return store.ready() || (one.is_linked && !waits); });
    if (!one.is_linked) {
      result.status = co_await store;
      co_return std::move(result);
    }
  }
  const bool reads = one.call == MapCall::find || one.call == MapCall::insert;
  ValueReference seen;
  do {
    result.status = Status::abandoned;
    if (one.is_given_up) break;
    DUNLIN_ASSERT(one.block.has_value() == one.is_linked,
                  "CON-V4: a slot refers to a linked block");
    one.may_be_referred = one.is_linked;
    MapRequest request(map_, one.call, one.promise, one.style, one.payload.data());
    const MapResult done = co_await map_.run(std::move(request));
    result.status = done.status;
    result.found = done.found;
    result.round_trips += done.round_trips;
    // A call that ends lost or stopped may have changed the slot; others have not, or say so.
    if (done.status != Status::lost && done.status != Status::stopped)
      one.may_be_referred = one.is_linked && done.status == Status::ok && !(reads && done.found);
    if (!done.found) break;
    const auto reference = reference_in(done.value.data());
    if (!reads && reference) free(one.home, *reference);
    if (!reads || one.is_given_up) break;
    if (!reference) {
      const auto value = value_in(done.value.data(), map_.spec.value_bytes);
      result.value.assign(value.begin(), value.end());
      break;
    }
    // A block that is freed is in no slot any more: the same reference again is damage.
    const bool is_damaged = !is_sound(*reference) || reference->stamp == seen.stamp;
    seen = *reference;
    result.status = Status::half_written;
    if (!is_damaged) result.status = co_await read_block(result, one.home, seen);
  } while (result.status == Status::busy);
  if (one.block) static_cast<void>(co_await store);  // which reads the image until then
  co_return std::move(result);
}

Protocol<Status> ValuePool::allocate(PooledCall& one) {
  DUNLIN_ASSERT(one.own.bytes > 0 && !one.block,
                "CON-V4: a value too long for its slot has one block");
  const std::size_t bytes = block_shape(one.own.bytes).slot_bytes;
  for (bool was_asked = false;; was_asked = true) {
    if (one.is_given_up) co_return Status::abandoned;
    const Status fault = map_.first.site.fault(one.home);
    if (fault != Status::ok) co_return fault;
    if (was_asked && slabs_.full(one.home, bytes)) co_return Status::no_room;
    one.block = slabs_.allocate(one.home, bytes);
    if (one.block) break;
    co_await Soon(map_.hub);
  }
  one.own.offset = one.block->offset;
  put_reference(one.own, one.payload.data() + map_.spec.key_bytes);
  co_return Status::ok;
}

/// CON-V3: whole, and the reference's; else the block has another value, and the slot another cell.
Protocol<Status> ValuePool::read_block(PooledResult& into, Rank home, ValueReference reference) {
  DUNLIN_ASSERT(is_sound(reference), "CON-V3: no block is read where none can be");
  const SlotShape shape = block_shape(reference.bytes);
  const CallMemory image(map_.buffers, shape.slot_bytes);
  if (image.data() == nullptr) co_return Status::no_memory;
  ++into.round_trips;
  const Status status = co_await post(map_.first.site, read(home, slabs_.region(), reference.offset,
                                                            image.data(), shape.slot_bytes));
  if (status == Status::out_of_range) co_return Status::half_written;
  if (status != Status::ok) co_return status;
  if (!is_block_of(reference, image.data())) co_return Status::busy;
  into.value.resize(reference.bytes);
  decode(shape, image.data(), 0, reference.bytes, into.value.data());
  co_return Status::ok;
}

}  // namespace dunlin::container
