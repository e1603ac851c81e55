#include <algorithm>
#include <cstring>
#include <utility>

#include "container/map.hpp"
#include "fault_injection.hpp"

/// A call on another member's part of a map, step by step.
namespace dunlin::container {

using remote::Status;

namespace {

/// An operation whose steps end at once, as on shm, takes so many and then lets others poll.
constexpr int kStepsAtOnce = 4096;

}  // namespace

MapOperation::MapOperation(MapCore& map) noexcept
    : ContainerOperation(map.state_->hub), map_(*map.state_) {
  if (map_.checker != nullptr) check_ = map_.checker->make_check();
}

void MapOperation::begin(MapCall call, Promise promise, Style style) noexcept {
  abandon();
  call_kind_ = call;
  promise_ = promise;
  style_ = style;
  map_.begin(*this);
  if (check_ != nullptr) begin_check(home_, checked_call(call), promise);
  start();
}

void MapOperation::refuse(Status status) noexcept {
  stage_ = Stage::done;
  found_ = false;
  end(status);
}

void MapOperation::advance() noexcept {
  if (check_ == nullptr || passes_check()) map_.advance(*this);
}
void MapOperation::clean_up() noexcept {
  map_.clean_up(*this);
  if (check_ != nullptr) give_up_check();
}

void MapOperation::replied(Status status, bool flag, std::span<const std::byte> content) noexcept {
  if (stage_ == Stage::room_asked) {
    Room room{.status = status};
    if (content.size() == sizeof(OfferedSlot))
      std::memcpy(&room.offered.emplace(), content.data(), sizeof(OfferedSlot));
    stage_ = Stage::ask_room;
    static_cast<void>(map_.take_room(*this, room));
    return hub_.look_again_soon();
  }
  if (status == Status::busy) {  // would have had to wait
    stage_ = Stage::ask;
    hub_.look_again_soon();
    return;
  }
  found_ = flag;
  const std::size_t bytes = map_.spec.value_bytes;
  if (bytes > 0 && content.size() == bytes)
    std::memcpy(payload_ + map_.spec.key_bytes, content.data(), bytes);
  answer_ = status;
  stage_ = Stage::done;
}

void MapState::begin(MapOperation& op) noexcept {
  const std::uint64_t hash = hash_of(op.payload_, spec.key_bytes);
  op.home_ = scale(static_cast<std::uint32_t>(hash >> 32), members);
  op.table_ = &first;
  op.slot_ = first.first_slot(hash);
  op.fingerprint_ = fingerprint_of(hash);
  op.serial_ = serial++;
  op.probed_ = op.round_trips_ = op.restarts_ = 0;
  op.claims_offer_ = false;
  op.level_ = 0;
  op.posted_ = 0;
  op.forget_rests();
  op.answered_ = false;
  op.answer_ = Status::ok;
  op.found_ = false;
  op.operand_ = op.call_kind_ == MapCall::add ? operand_of(op.payload_) : 0;
  op.stage_ = Stage::choose;
}

void MapState::advance(MapOperation& op) noexcept {
  for (int steps = 0; steps < kStepsAtOnce; ++steps) {
    if (op.completion_.failed()) return op.finish(Status::lost);
    if (!step(op)) return;
  }
  hub.look_again_soon();
}

bool MapState::step(MapOperation& op) noexcept {
  switch (op.stage_) {
    case Stage::choose:
      return choose(op);
    case Stage::ask:
      return ask(op);
    case Stage::asked:
    case Stage::room_asked:
      if (const Status fault = first.site.fault(op.home_); fault != Status::ok) op.finish(fault);
      return false;
    case Stage::claim:
      return claim(op);
    case Stage::claimed:
      return claimed(op);
    case Stage::look:
      return look(op);
    case Stage::looked:
      return looked(op);
    case Stage::publish:
      return publish(op);
    case Stage::next_table:
      return next_table(op);
    case Stage::count:
      return count_tables(op);
    case Stage::counted:
      return counted_tables(op);
    case Stage::ask_room:
      return ask_room(op);
    case Stage::offered:  // as a vacant slot, of which the word is known
      return act(op, Sight::vacant, reinterpret_cast<const std::byte*>(&op.before_));
    case Stage::done:
      op.finish(op.answer_);
      return false;
  }
  return false;
}

/// Directly in own memory, by message, or one-sided.
bool MapState::choose(MapOperation& op) noexcept {
  if (const auto applied = at_once(op.home_, op.call_kind_, op.promise_, op.style_, op.payload_)) {
    op.found_ = applied->found;
    op.finish(applied->status);
    return false;
  }
  if (op.home_ == self && (op.call_kind_ == MapCall::find || writes_directly(op.promise_))) {
    hub.look_again_soon();
    return false;
  }
  if (const Status fault = first.site.fault(op.home_); fault != Status::ok) {
    op.finish(fault);
    return false;
  }
  const bool by_message = op.home_ != self && style_of(op) == Style::message;
  ++(by_message ? counters.by_message : counters.one_sided);
  if (by_message) {
    op.stage_ = Stage::ask;
    return true;
  }
  if (is_injected(FaultInjection::full_table_is_passed_over)) {
    op.level_ = static_cast<std::uint8_t>(std::min(known[op.home_], tables()) - 1);
    op.table_ = &table(op.level_);
    op.slot_ = op.table_->first_slot(hash_of(op.payload_, spec.key_bytes));
  }
  const bool may_be_vacant = known[op.home_] == 1;  // else the first table is full, or nearly so
  if (op.call_kind_ == MapCall::insert && may_be_vacant) {  // most find a vacant slot at once
    op.expected_ = 0;
    op.desired_ =
        *claim_word(MapCall::insert, Sight::vacant, op.promise_, 0, op.serial_, op.fingerprint_);
    op.stage_ = Stage::claim;
  } else {
    op.stage_ = Stage::look;
  }
  return true;
}

Style MapState::style_of(const MapOperation& op) noexcept {
  const bool finds = op.call_kind_ == MapCall::find;
  if (kMessageHeader + spec.key_bytes + spec.value_bytes > kMaxMessageBytes)
    return Style::one_sided;
  if (spec.style == Style::message && !(finds && op.style_ == Style::one_sided))
    return Style::message;
  if (!coherent) return Style::one_sided;
  const Style wanted = op.style_ != Style::automatic ? op.style_ : spec.style;
  if (wanted != Style::automatic) return wanted;
  static constexpr std::array kModelled{Call::insert, Call::assign, Call::find, Call::erase,
                                        Call::assign, Call::assign, Call::erase};
  return hub.cheaper_style(styles, kModelled[static_cast<std::size_t>(op.call_kind_)],
                           {.promise = op.promise_,
                            .load = load.load(),
                            .tables = static_cast<double>(known[op.home_]),
                            .clients = clients_of_part(hub.present),
                            .bytes = static_cast<double>(shape.slot_bytes)},
                           op.home_);
}

bool MapState::ask(MapOperation& op) noexcept {
  if (const Status fault = first.site.fault(op.home_); fault != Status::ok) {
    op.finish(fault);
    return false;
  }
  if (!first.site.connected(op.home_)) return false;
  MessageHead head{.container = first.site.id()};
  head.operation = static_cast<std::uint8_t>(op.call_kind_);
  head.flag = static_cast<std::uint8_t>(op.promise_);
  const std::size_t bytes = spec.key_bytes + (takes_slot(op.call_kind_) ? spec.value_bytes : 0);
  if (hub.ask(op, op.home_, head, std::span(op.payload_, bytes)) == Hub::Sent::yes) {
    op.stage_ = Stage::asked;
    ++op.round_trips_;
  }
  return false;
}

bool MapState::post(MapOperation& op, Site& at, std::span<const Operation> batch,
                    Stage next) noexcept {
  switch (at.post(op.home_, batch, op.posted_)) {
    case Site::Posted::all:
      op.stage_ = next;
      ++op.round_trips_;
      return op.completion_.finished();
    case Site::Posted::later:
      return false;
    case Site::Posted::never: {
      const Status fault = at.fault(op.home_);
      hub.fabric.abandon(op.completion_);
      op.finish(fault != Status::ok ? fault : Status::out_of_range);
      return false;
    }
  }
  return false;
}

void MapState::next_slot(MapOperation& op, std::uint32_t by) const noexcept {
  op.probed_ += by;
  const std::uint32_t slots = op.table_->slots;
  op.slot_ = op.slot_ + by < slots ? op.slot_ + by : op.slot_ + by - slots;
}

// --- claiming a slot -----------------------------------------------------------------------------

bool MapState::claim(MapOperation& op) noexcept {
  Site& at = op.table_->site;
  const Operation swap = compare_swap(op.home_, at.region(), offset_of(op.slot_), op.expected_,
                                      op.desired_, &op.before_)
                             .notify(op.completion_);
  return post(op, at, std::span(&swap, 1), Stage::claimed);
}

bool MapState::claimed(MapOperation& op) noexcept {
  const bool is_lost = op.before_ != op.expected_;
  if (std::exchange(op.claims_offer_, false) && is_lost) {
    restart(op);
    return true;
  }
  if (is_lost && !is_injected(FaultInjection::lost_claim_is_used)) {
    // The answer gives the slot's fingerprint; only if it equals ours, the key must be read.
    const bool others = word::state_of(op.before_) == word::voided ||
                        word::fingerprint_of(op.before_) != op.fingerprint_;
    if (others && op.before_ != 0) next_slot(op);
    op.stage_ = Stage::look;
    return true;
  }
  if (op.expected_ == 0) load.note(op.level_, op.probed_ > 0, false);
  if (word::state_of(op.desired_) == word::erased) {
    op.finish(Status::ok);
    return false;
  }
  op.ready_ = word::with_state(op.desired_, word::ready);
  encode(shape, op.payload_, op.ready_, op.window_.data());
  op.stage_ = Stage::publish;
  return true;
}

/// The payload, with its stamps, and the word that publishes it: a reader that sees the second sees
/// the first. A slot that was claimed as ready has its word already.
bool MapState::publish(MapOperation& op) noexcept {
  const bool has_word = op.desired_ == op.ready_;
  Site& site = op.table_->site;
  const std::uint64_t at = offset_of(op.slot_);
  const std::array batch{write(op.home_, site.region(), at + kStampBytes,
                               op.window_.data() + kStampBytes, shape.slot_bytes - kStampBytes)
                             .notify(op.completion_, Notify::remotely),
                         write(op.home_, site.region(), at, &op.ready_, kStampBytes)
                             .notify(op.completion_, Notify::remotely)};
  if (is_injected(FaultInjection::word_before_payload) && !has_word)
    return post(op, site, std::array{batch[1], batch[0]}, Stage::done);
  return post(op, site, std::span(batch).first(has_word ? 1 : 2), Stage::done);
}

// --- looking for the key -------------------------------------------------------------------------

/// To the end of the line at first; what is searched longer than that is read in larger pieces.
bool MapState::look(MapOperation& op) noexcept {
  if (op.rests()) return false;
  MapTable& of = *op.table_;
  if (op.probed_ >= of.window) {
    op.stage_ = Stage::next_table;
    return true;
  }
  std::uint32_t slots = 1;
  if (shape.slot_bytes < kCacheLineBytes && (op.slot_ & 1) == 0) slots = 2;
  const bool is_long = op.probed_ > 1 || op.level_ + 1U < known[op.home_];
  if (is_long) slots = std::max(kProbeBytes / shape.slot_bytes, 1U);
  op.looking_ = std::min({slots, of.slots - op.slot_, of.window - op.probed_});
  const Operation get = read(op.home_, of.site.region(), offset_of(op.slot_), op.window_.data(),
                             std::size_t{op.looking_} * shape.slot_bytes)
                            .notify(op.completion_);
  return post(op, of.site, std::span(&get, 1), Stage::looked);
}

bool MapState::looked(MapOperation& op) noexcept {
  for (std::uint32_t i = 0; i < op.looking_; ++i) {
    const std::byte* const slot = op.window_.data() + std::size_t{i} * shape.slot_bytes;
    const Sight sight = judge(op.call_kind_, op.fingerprint_, op.payload_, slot);
    if (sight == Sight::other) continue;
    next_slot(op, i);
    if (sight != Sight::wait) return act(op, sight, slot);
    op.stage_ = Stage::look;
    op.begin_rest(kShortRestNs);
    return false;
  }
  next_slot(op, op.looking_);
  op.stage_ = Stage::look;
  return true;
}

/// Of an add, and of an exchange or a take.
void MapState::use_former(MapOperation& op, const std::byte* slot) const noexcept {
  const bool adds = op.call_kind_ == MapCall::add;
  std::byte* const to = adds ? op.payload_ + spec.key_bytes : op.former_;
  if (adds) std::memset(to, 0, spec.value_bytes);  // an earlier attempt may have left its sum
  if (op.found_) decode(shape, slot, spec.key_bytes, spec.value_bytes, to);
  if (adds) return add_to(op.payload_, op.operand_);
  op.kept_ = true;
}

bool MapState::act(MapOperation& op, Sight sight, const std::byte* slot) noexcept {
  const std::uint64_t seen = word_at(slot);
  const auto word =
      claim_word(op.call_kind_, sight, op.promise_, seen, op.serial_, op.fingerprint_);
  op.found_ = sight == Sight::present;
  if (sight != Sight::vacant || !word) load.note(op.level_, op.probed_ > 0, sight != Sight::vacant);
  if (word) {
    if (needs_former(op.call_kind_)) use_former(op, slot);
    op.expected_ = seen;
    op.desired_ = *word;
    op.stage_ = Stage::claim;
    return true;
  }
  if (op.found_)
    decode(shape, slot, spec.key_bytes, spec.value_bytes, op.payload_ + spec.key_bytes);
  op.finish(sight == Sight::half ? Status::half_written : Status::ok);
  return false;
}

// --- the end -------------------------------------------------------------------------------------

/// CON-P5: a claim that is not published as a whole is given up. The claim may be on its way still;
/// the compare-and-swap comes behind it, and fails if there is nothing to do.
void MapState::clean_up(MapOperation& op) noexcept {
  hub.forget(op);
  const bool may_be_claimed = op.stage_ == Stage::claimed || op.stage_ == Stage::publish;
  if (!may_be_claimed || op.status() == Status::ok || first.site.fault(op.home_) != Status::ok)
    return;
  const word::State state = word::state_of(op.desired_);
  if (state == word::erased || is_injected(FaultInjection::given_up_claim_stays)) return;
  const word::State left = state == word::changing ? word::half : word::voided;
  mends.push_back(
      {op.table_, op.home_, op.slot_, op.desired_, word::with_state(op.desired_, left)});
  hub.look_again_soon();
}

}  // namespace dunlin::container
