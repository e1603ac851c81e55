#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"
#include "fault_injection.hpp"

/// Calls on a map with a pool.
namespace dunlin::container {

using remote::Status;

// --- the caller's operation ----------------------------------------------------------------------

void PooledCallDeleter::operator()(PooledCall* call) const noexcept { delete call; }

PooledMapOperation::PooledMapOperation(MapCore& map)
    : MapOperation(map), core_(map), values_(map.values()) {
  if (values_ != nullptr) make_call();
}

void PooledMapOperation::make_call() { pooled_.reset(new PooledCall(core_, *values_)); }

void PooledMapOperation::begin_pooled(MapCall call, const std::byte* key,
                                      std::span<const std::byte> value, Promise promise,
                                      Style style) noexcept {
  abandon();
  if (value.size() > core_.spec().longest_value) return refuse(Status::too_long);
  if (pooled_ == nullptr) make_call();  // the former one was given up
  pooled_->begin(call, key, value, promise, style);
  start();
}

std::span<const std::byte> PooledMapOperation::pooled_value() const noexcept {
  return pooled_ != nullptr ? pooled_->value() : std::span<const std::byte>();
}

void PooledMapOperation::advance() noexcept {
  if (values_ == nullptr) return MapOperation::advance();
  const Status status = pooled_->step();
  if (status == Status::under_way) return;
  set_result(pooled_->found(), pooled_->round_trips());
  end(status);
}

void PooledMapOperation::clean_up() noexcept {
  if (values_ == nullptr) return MapOperation::clean_up();
  if (pooled_ != nullptr && !pooled_->give_up()) values_->adopt(std::move(pooled_));
}

// --- the call on the core ------------------------------------------------------------------------

CellOperation::CellOperation(MapCore& map)
    : MapOperation(map),
      key_bytes_(map.spec().key_bytes),
      payload_(std::size_t{key_bytes_} + map.spec().value_bytes),
      former_(map.spec().value_bytes),
      window_(lines_for(std::max<std::size_t>(kProbeBytes, shape_of(payload_.size()).slot_bytes))) {
  use(payload_.data(), std::as_writable_bytes(std::span(window_)));
  use_former(former_.data());
}

PooledCall::PooledCall(MapCore& core, ValuePool& pool)
    : pool_(pool), map_(pool.map()), op_(core), cell_(map_.spec.value_bytes) {}

PooledCall::~PooledCall() { map_.hub.fabric.abandon(done_); }

std::byte* PooledCall::image(std::size_t bytes) noexcept {
  if (image_.size() < lines_for(bytes)) image_.resize(lines_for(bytes));
  return std::as_writable_bytes(std::span(image_)).data();
}

/// Requires that the former call has ended.
void PooledCall::begin(MapCall call, const std::byte* key, std::span<const std::byte> value,
                       Promise promise, Style style) noexcept {
  call_ = call == MapCall::assign  ? MapCall::exchange
          : call == MapCall::erase ? MapCall::take
                                   : call;
  promise_ = promise;
  style_ = style;
  std::memcpy(op_.key(), key, map_.spec.key_bytes);
  const std::uint64_t hash = hash_of(key, map_.spec.key_bytes);
  home_ = scale(static_cast<std::uint32_t>(hash >> 32), map_.members);
  has_block_ = is_linked_ = is_referred_ = found_ = was_asked_for_ = false;
  wants_value_ = true;
  round_trips_ = 0;
  posted_ = 0;
  seen_ = {};
  value_ = {};
  done_.reset();
  std::fill(cell_.begin(), cell_.end(), std::byte{0});
  stage_ = Stage::call;
  if (!takes_slot(call_)) return;
  if (value.size() + kLengthBytes <= cell_.size()) {
    const auto length = static_cast<std::uint16_t>(value.size());
    std::memcpy(cell_.data(), &length, kLengthBytes);
    if (length > 0) std::memcpy(cell_.data() + kLengthBytes, value.data(), length);
    return;
  }
  own_ = {.stamp = pool_.next_stamp(), .bytes = static_cast<std::uint32_t>(value.size())};
  const SlotShape shape = block_shape(own_.bytes);
  encode(shape, value.data(), own_.stamp, image(shape.slot_bytes));
  stage_ = Stage::allocate;
}

Status PooledCall::step() noexcept {
  while (go_on()) {
  }
  if (stage_ != Stage::settle || !done_.finished()) return Status::under_way;
  return result_;
}

bool PooledCall::go_on() noexcept {
  switch (stage_) {
    case Stage::allocate:
      return allocate();
    case Stage::store:
      return store();
    case Stage::stored:
      if (!done_.finished()) return false;
      stage_ = Stage::call;
      return true;
    case Stage::call:
      std::memcpy(op_.cell(), cell_.data(), cell_.size());
      is_referred_ = has_block_;
      stage_ = Stage::called;
      op_.run(call_, promise_, style_);
      if (!op_.finished())  // it may end behind its caller's turn
        op_.then([hub = &map_.hub] { hub->fabric.wake_at(hub->fabric.now_ns()); });
      return true;
    case Stage::called:
      if (!op_.finished()) return false;
      called();
      return true;
    case Stage::read:
      return read();
    case Stage::fetched:
      if (!done_.finished()) return false;
      fetched();
      return true;
    case Stage::settle:
      return false;
  }
  return false;
}

// --- the block of a value that is written --------------------------------------------------------

bool PooledCall::allocate() noexcept {
  if (const Status fault = map_.first.site.fault(home_); fault != Status::ok) {
    finish(fault);
    return false;
  }
  const std::size_t bytes = block_shape(own_.bytes).slot_bytes;
  if (was_asked_for_ && pool_.slabs().full(home_, bytes)) {
    finish(Status::no_room);
    return false;
  }
  const auto block = pool_.slabs().allocate(home_, bytes);
  was_asked_for_ = true;
  if (!block) {
    map_.hub.look_again_soon();
    return false;
  }
  block_ = *block;
  has_block_ = true;
  own_.offset = block->offset;
  put_reference(own_, cell_.data());
  stage_ = Stage::store;
  return true;
}

/// CON-V4: what the call on the core posts, or sends, comes behind these (FAB-F1). Only a call on
/// the own part posts nothing.
bool PooledCall::store() noexcept {
  const std::array batch{write(home_, pool_.slabs().region(), block_.offset, image_.data(),
                               block_shape(own_.bytes).slot_bytes)
                             .notify(done_, Notify::remotely),
                         pool_.slabs().link(block_)};
  switch (map_.first.site.post(home_, batch, posted_)) {
    case Site::Posted::all:
      is_linked_ = true;
      stage_ = home_ == map_.self ? Stage::stored : Stage::call;
      return true;
    case Site::Posted::later:
      return false;
    case Site::Posted::never: {
      const Status fault = map_.first.site.fault(home_);
      finish(fault != Status::ok ? fault : Status::out_of_range);
      return false;
    }
  }
  return false;
}

// --- the call on the core has ended --------------------------------------------------------------

void PooledCall::called() noexcept {
  const Status status = op_.status();
  round_trips_ += op_.round_trips();
  found_ = status == Status::ok && op_.found();
  const bool reads = call_ == MapCall::find || call_ == MapCall::insert;
  // A call that ends lost or stopped may have changed the slot; others have not, or have said so.
  const bool is_known = status != Status::lost && status != Status::stopped;
  if (is_known) is_referred_ = has_block_ && status == Status::ok && !(reads && found_);
  if (!found_) return finish(status);
  if (!reads) {
    if (const auto former = reference_in(op_.former())) pool_.free(home_, *former);
    return finish(status);
  }
  if (!wants_value_) return finish(status);
  const auto reference = reference_in(op_.cell());
  if (!reference) {
    value_ = value_in(op_.cell(), map_.spec.value_bytes);
    return finish(status);
  }
  // A block that is freed is in no slot any more: the same reference again is damage.
  if (!pool_.is_sound(*reference) || reference->stamp == seen_.stamp)
    return finish(Status::half_written);
  seen_ = *reference;
  stage_ = Stage::read;
}

bool PooledCall::read() noexcept {
  if (!done_.finished()) return false;  // the image is that of the own block still
  const std::size_t bytes = block_shape(seen_.bytes).slot_bytes;
  std::byte* const to = image(bytes);
  if (home_ == map_.self) {
    memory::fetch(to, pool_.slabs().own_memory().data() + seen_.offset, bytes);
    stage_ = Stage::fetched;
    return true;
  }
  const Operation get =
      dunlin::read(home_, pool_.slabs().region(), seen_.offset, to, bytes).notify(done_);
  switch (map_.first.site.post(home_, std::span(&get, 1), posted_)) {
    case Site::Posted::all:
      ++round_trips_;
      stage_ = Stage::fetched;
      return true;
    case Site::Posted::later:
      return false;
    case Site::Posted::never: {
      const Status fault = map_.first.site.fault(home_);
      finish(fault != Status::ok ? fault : Status::half_written);
      return false;
    }
  }
  return false;
}

/// CON-V3: whole, and the reference's; else the block has another value, and the slot another cell.
void PooledCall::fetched() noexcept {
  if (done_.failed()) return finish(Status::lost);
  const std::byte* const block = std::as_bytes(std::span(image_)).data();
  if (!is_block_of(seen_, block)) {
    stage_ = Stage::call;
    return;
  }
  if (content_.size() < seen_.bytes) content_.resize(seen_.bytes);
  decode(block_shape(seen_.bytes), block, 0, seen_.bytes, content_.data());
  value_ = std::span(content_).first(seen_.bytes);
  finish(Status::ok);
}

// --- the end -------------------------------------------------------------------------------------

void PooledCall::finish(Status status) noexcept {
  result_ = status;
  drop_block();
  stage_ = Stage::settle;
}

/// CON-V5: a block that no slot has referred to.
void PooledCall::drop_block() noexcept {
  if (!has_block_ || is_referred_) return;
  has_block_ = false;
  if (is_linked_) return pool_.free(block_);
  pool_.slabs().cancel(block_);
}

bool PooledCall::give_up() noexcept {
  if (stage_ == Stage::settle) {
    map_.hub.fabric.abandon(done_);
    return true;
  }
  const bool may_change = stage_ == Stage::called && call_ != MapCall::find;
  wants_value_ = false;
  if (may_change && !is_injected(FaultInjection::given_up_block_stays)) return false;
  op_.abandon();
  map_.hub.fabric.abandon(done_);
  finish(Status::abandoned);
  return true;
}

}  // namespace dunlin::container
