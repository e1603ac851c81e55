#include <algorithm>
#include <utility>

#include <dunlin/container/map_scan.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/map.hpp"
#include "container/piece_values.hpp"

/// A scan of all parts of a map, piece by piece.
namespace dunlin::container {

namespace {

/// Reads the blocks that are wanted, all at once.
class BlockReads final : public remote::Waiter {
 public:
  BlockReads(Site& site, Rank home, PieceValues& values) noexcept
      : site_(site), home_(home), values_(values) {}
  ~BlockReads() { site_.fabric().abandon(done_); }
  [[nodiscard]] bool ready() noexcept override {
    for (; posted_ < values_.wanted.size(); ++posted_) {
      const PieceValues::Value& value = values_.values[values_.wanted[posted_]];
      const Operation get = read(home_, values_.pool.slabs().region(), value.reference.offset,
                                 values_.at(value), block_shape(value.reference.bytes).slot_bytes)
                                .notify(done_);
      std::size_t accepted = 0;
      switch (site_.post(home_, std::span(&get, 1), accepted)) {
        case Site::Posted::all:
          break;
        case Site::Posted::later:
          return false;
        case Site::Posted::never:
          status_ = Status::lost;
          return true;
      }
    }
    return done_.finished();
  }
  [[nodiscard]] Status result() const noexcept { return done_.failed() ? Status::lost : status_; }

 private:
  Site& site_;
  Rank home_;
  PieceValues& values_;
  std::size_t posted_ = 0;
  Status status_ = Status::ok;
  Completion done_;
};

}  // namespace

MapScan::MapScan(MapCore& map, Promise promise)
    : map_(*map.state_),
      promise_(promise),
      payload_(map_.shape.payload_bytes + 1),
      most_(std::min(kScanBytes / map_.shape.slot_bytes,
                     *std::max_element(map_.sizes.begin(), map_.sizes.end()))),
      parts_left_(map_.members),
      home_(map_.has_part() ? map_.self : 0) {
  static_assert(kScanBytes >= shape_of(kMaxElementBytes).slot_bytes);
  if (map_.values != nullptr) {
    most_ =
        std::clamp(kScanValueBytes / block_shape(map_.spec.longest_value).slot_bytes, 1U, most_);
    values_ = std::make_unique<PieceValues>(*map_.values, most_);
    values_->content.reserve(map_.spec.longest_value);
  }
  window_.resize(lines_for(std::size_t{most_} * map_.shape.slot_bytes));
  found_.reserve(most_);
  pending_.reserve(most_);
}

MapScan::~MapScan() = default;

const MapSpec& MapScan::spec() const noexcept { return map_.spec; }
remote::Progress& MapScan::its_progress() const noexcept { return map_.hub.progress; }

remote::Call<Status>& MapScan::next() {
  piece_.abandon();
  if (parts_left_ == 0) parts_left_ = map_.members;
  found_.clear();
  pending_.clear();
  half_ = false;
  DUNLIN_ASSERT(level_ < map_.sizes.size() && slot_ < map_.sizes[level_],
                "CON-I1: a piece begins in a table");
  count_ = std::min(most_, map_.sizes[level_] - slot_);
  return piece_ = remote::Call<Status>(its_progress(), read_checked());
}

// --- a piece -------------------------------------------------------------------------------------

Protocol<Status> MapScan::read_checked() {
  struct Unfinished {  // what is found in a piece that was not read to its end does not count
    std::vector<std::uint32_t>* found;
    ~Unfinished() {
      if (found != nullptr) found->clear();
    }
  } unfinished{&found_};
  Announcement mine(map_.checker.get(), home_, {record::kScanCall, promise_});
  Status status = Status::ok;
  if (mine.needed()) status = co_await mine.make();
  if (status == Status::ok) {
    status = co_await read_piece();
    if (mine.needed()) static_cast<void>(co_await mine.retract());
  }
  if (status == Status::ok || status == Status::half_written) unfinished.found = nullptr;
  go_on(status);
  co_return status;
}

/// The next piece is behind this one, or at the next part, or here again.
void MapScan::go_on(Status status) noexcept {
  bool leaves_part =
      status == Status::lost || status == Status::refused || status == Status::no_room;
  if (status == Status::ok || status == Status::half_written) {
    slot_ += count_;
    if (slot_ == map_.sizes[level_]) {
      slot_ = 0;
      leaves_part = ++level_ == map_.tables_of(home_);
    }
  }
  if (!leaves_part) return;
  DUNLIN_ASSERT(parts_left_ > 0, "CON-I1: each part is left once");
  --parts_left_;
  home_ = (home_ + 1) % map_.members;
  level_ = slot_ = 0;
}

Protocol<Status> MapScan::read_piece() {
  if (values_ != nullptr) {
    std::fill(values_->values.begin(), values_->values.end(), PieceValues::Value{});
    values_->lines = 0;
  }
  if (level_ >= map_.tables()) {  // the way to the home's table is a table of our own
    map_.want_tables(level_ + 1);
    co_await remote::Until([&] { return level_ < map_.tables() || !map_.why_not_grown.empty(); });
    if (level_ >= map_.tables()) co_return Status::no_room;
  }
  Status status = co_await read_slots(0, count_);
  if (status != Status::ok) co_return status;
  for (std::uint32_t place = 0; place < count_; ++place) look_at(place);
  Rests rests(map_.hub);
  do {
    while (!pending_.empty()) {
      const std::uint32_t place = pending_.back();
      pending_.pop_back();
      status = co_await read_slots(place, 1);
      if (status != Status::ok) co_return status;
      look_at(place);
      if (!pending_.empty() && pending_.back() == place) co_await rests.pause(kShortRestNs);
    }
    if (values_ != nullptr) status = co_await read_values();
    if (status != Status::ok) co_return status;
  } while (!pending_.empty());
  DUNLIN_ASSERT(level_ < map_.tables(), "CON-I1: a piece is of a table");
  if (must_count()) {
    std::uint64_t count = 0;
    Site& site = map_.first.site;
    status = co_await post(site, read(home_, site.region(), 0, &count, sizeof count));
    if (status != Status::ok) co_return status;
    map_.learn_windows(home_, count);
  }
  co_return half_ ? Status::half_written : Status::ok;
}

/// Whether this piece is the last one of the part's tables, as far as this member knows.
bool MapScan::must_count() const noexcept {
  const bool ends_table = slot_ + count_ == map_.sizes[level_];
  return ends_table && level_ + 1 == map_.tables_of(home_) && level_ + 1 < map_.sizes.size() &&
         home_ != map_.self;
}

std::byte* MapScan::slot_at(std::uint32_t place) noexcept {
  DUNLIN_ASSERT(place < most_, "CON-I1: a piece fits in the memory of its scan");
  return std::as_writable_bytes(std::span(window_)).data() +
         std::size_t{place} * map_.shape.slot_bytes;
}

/// Reads slots of the piece into their places.
Protocol<Status> MapScan::read_slots(std::uint32_t place, std::uint32_t count) {
  DUNLIN_ASSERT(place + count <= count_, "CON-I1: each slot is in one piece");
  MapTable& of = map_.table(level_);
  const std::size_t bytes = std::size_t{count} * map_.shape.slot_bytes;
  if (home_ == map_.self) {
    memory::fetch(slot_at(place), map_.own(of, slot_ + place), bytes);
    co_return Status::ok;
  }
  const Status status = co_await post(
      of.site, read(home_, of.site.region(), map_.offset_of(slot_ + place), slot_at(place), bytes));
  co_return status == Status::out_of_range ? Status::lost : status;
}

void MapScan::look_at(std::uint32_t place) noexcept {
  const SlotImage slot{map_.shape, slot_at(place)};
  switch (word::state_of(slot.its_word())) {
    case word::ready:
      if (slot.is_whole()) {
        found_.push_back(place);
      } else if (slot.is_written()) {  // else its first insert has not ended
        pending_.push_back(place);
      }
      return;
    case word::changing:
      pending_.push_back(place);
      return;
    case word::half:
      half_ = true;
      return;
    default:
      return;
  }
}

/// The blocks of all elements that were found, at once. Slots whose blocks have been used anew
/// since are to be read again.
Protocol<Status> MapScan::read_values() {
  DUNLIN_ASSERT(values_ != nullptr, "CON-V3: only a map with a pool has blocks to read");
  PieceValues& all = *values_;
  all.wanted.clear();
  std::erase_if(found_, [&](std::uint32_t place) {
    PieceValues::Value& value = all.values[place];
    if (value.is_read) return false;
    decode(map_.shape, slot_at(place), 0, map_.shape.payload_bytes, payload_.data());
    const auto reference = reference_in(payload_.data() + map_.spec.key_bytes);
    if (!reference) return false;
    // A block that is freed is in no slot any more: the same reference again is damage.
    if (!all.pool.is_sound(*reference) || reference->stamp == value.reference.stamp)
      return half_ = true;
    value = {.reference = *reference, .line = all.lines};
    all.lines += lines_for(block_shape(reference->bytes).slot_bytes);
    all.wanted.push_back(place);
    return false;
  });
  if (all.blocks.size() < all.lines) all.blocks.resize(all.lines);
  if (home_ == map_.self) {
    for (const std::uint32_t place : all.wanted)
      static_cast<void>(
          all.pool.fetch(home_, all.values[place].reference, all.at(all.values[place])));
  } else {
    BlockReads reads(map_.first.site, home_, all);
    const Status status = co_await reads;
    if (status != Status::ok) co_return status;
  }
  for (const std::uint32_t place : all.wanted) {
    PieceValues::Value& value = all.values[place];
    value.is_read = is_block_of(value.reference, all.at(value));
    if (value.is_read) continue;
    std::erase(found_, place);
    pending_.push_back(place);
  }
  co_return Status::ok;
}

// --- what was found ------------------------------------------------------------------------------

const std::byte* MapScan::payload_of(std::size_t i) noexcept {
  const SlotImage slot{map_.shape, slot_at(found_[i])};
  slot.read_key(map_.spec.key_bytes, payload_.data());
  slot.read_value(map_.spec.key_bytes, payload_.data() + map_.spec.key_bytes);
  return payload_.data();
}

std::span<const std::byte> MapScan::value_of(std::size_t i) noexcept {
  const PieceValues::Value& value = values_->values[found_[i]];
  if (!value.is_read) return value_in(payload_of(i) + map_.spec.key_bytes, map_.spec.value_bytes);
  values_->content.resize(value.reference.bytes);
  decode(block_shape(value.reference.bytes), values_->at(value), 0, value.reference.bytes,
         values_->content.data());
  return values_->content;
}

}  // namespace dunlin::container
