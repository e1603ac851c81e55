#include <algorithm>

#include <dunlin/container/map_scan.hpp>
#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"
#include "container/piece_values.hpp"
#include "fault_injection.hpp"

/// A scan of all parts of a map, piece by piece.
namespace dunlin::container {

using remote::Status;

MapScan::MapScan(MapCore& map, Promise promise)
    : ContainerOperation(map.state_->hub),
      map_(*map.state_),
      promise_(promise),
      payload_(map_.shape.payload_bytes + 1),
      most_(std::min(kScanBytes / map_.shape.slot_bytes,
                     *std::max_element(map_.sizes.begin(), map_.sizes.end()))),
      parts_left_(hub_.progress.size()),
      home_(hub_.fabric.rank()) {
  static_assert(kScanBytes >= shape_of(kMaxElementBytes).slot_bytes);
  if (map_.values != nullptr) {
    most_ =
        std::clamp(kScanValueBytes / block_shape(map_.spec.longest_value).slot_bytes, 1U, most_);
    values_.reset(new PieceValues(*map_.values, most_));
  }
  window_.resize(lines_for(std::size_t{most_} * map_.shape.slot_bytes));
  found_.reserve(most_);
  pending_.reserve(most_);
  if (map_.checker != nullptr) check_ = map_.checker->make_check();
}

const MapSpec& MapScan::spec() const noexcept { return map_.spec; }

void MapScan::begin_next() noexcept {
  abandon();
  if (parts_left_ == 0) parts_left_ = hub_.progress.size();
  posted_ = 0;
  forget_rests();
  found_.clear();
  pending_.clear();
  half_ = false;
  if (values_ != nullptr) values_->begin();
  count_ = std::min(most_, map_.sizes[level_] - slot_);
  stage_ = Stage::read;
  if (check_ != nullptr) begin_check(home_, record::kScanCall, promise_);
  start();
}

void MapScan::next_part() noexcept {
  --parts_left_;
  home_ = (home_ + 1) % hub_.progress.size();
  level_ = slot_ = 0;
}

/// Whether this piece is the last one of the part's tables, as far as this member knows.
bool MapScan::must_count() const noexcept {
  const bool ends_table = slot_ + count_ == map_.sizes[level_];
  return ends_table && level_ + 1 == map_.known[home_] && level_ + 1 < map_.sizes.size() &&
         home_ != hub_.fabric.rank();
}

bool MapScan::count_tables() noexcept {
  const Operation get =
      read(home_, map_.first.site.region(), 0, &tables_, sizeof tables_).notify(completion_);
  const Site::Posted posted = map_.first.site.post(home_, std::span(&get, 1), posted_);
  if (posted == Site::Posted::never) finish(Status::lost);
  if (posted == Site::Posted::all) stage_ = Stage::counted;
  return posted == Site::Posted::all && completion_.finished();
}

/// Reads slots of the part into their places; whether they are there. `next` follows that.
bool MapScan::fetch(std::uint32_t slot, std::uint32_t count, Stage next) noexcept {
  std::byte* const to = std::as_writable_bytes(std::span(window_)).data() +
                        std::size_t{slot - slot_} * map_.shape.slot_bytes;
  const std::size_t bytes = std::size_t{count} * map_.shape.slot_bytes;
  if (level_ >= map_.tables()) {  // the way to the home's table is a table of our own
    map_.want_tables(level_ + 1);
    if (!map_.why_not_grown.empty()) finish(Status::no_room);
    return false;
  }
  MapTable& of = map_.table(level_);
  if (home_ == hub_.fabric.rank()) {
    memory::fetch(to, map_.own(of, slot), bytes);
    stage_ = next;
    return true;
  }
  const Operation get =
      read(home_, of.site.region(), map_.offset_of(slot), to, bytes).notify(completion_);
  const Site::Posted posted = of.site.post(home_, std::span(&get, 1), posted_);
  if (posted == Site::Posted::never) finish(Status::lost);
  if (posted != Site::Posted::all) return false;
  stage_ = next;
  return completion_.finished();
}

void MapScan::look_at(std::uint32_t place) noexcept {
  const std::byte* const slot =
      std::as_bytes(std::span(window_)).data() + std::size_t{place} * map_.shape.slot_bytes;
  switch (word::state_of(word_at(slot))) {
    case word::ready:
      if (is_whole(map_.shape, slot) || is_injected(FaultInjection::torn_scan_is_taken)) {
        found_.push_back(place);
      } else if (is_written(map_.shape, slot)) {  // else its first insert has not ended
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

void MapScan::advance() noexcept {
  if (check_ != nullptr && !passes_check()) return;
  if (completion_.failed()) return finish(Status::lost);
  if (const Status fault = map_.first.site.fault(home_); fault != Status::ok) return finish(fault);
  for (;;) {
    switch (stage_) {
      case Stage::read:
        if (!fetch(slot_, count_, Stage::look)) return;
        break;
      case Stage::look:
        for (std::uint32_t place = 0; place < count_; ++place) look_at(place);
        stage_ = Stage::reread;
        break;
      case Stage::reread:
        if (pending_.empty()) {
          stage_ = values_ != nullptr ? Stage::values : Stage::count;
          break;
        }
        if (rests() || !fetch(slot_ + pending_.back(), 1, Stage::look_again)) return;
        break;
      case Stage::look_again: {
        const std::uint32_t place = pending_.back();
        pending_.pop_back();
        look_at(place);
        stage_ = Stage::reread;
        if (pending_.empty() || pending_.back() != place) break;
        begin_rest(kShortRestNs);
        return;
      }
      case Stage::values:
        if (!read_values()) return;
        break;
      case Stage::counted:
        map_.learn_tables(home_, tables_);
        [[fallthrough]];
      case Stage::count:
        if (stage_ == Stage::count && must_count()) {
          if (!count_tables()) return;
          break;
        }
        return finish(half_ ? Status::half_written : Status::ok);
    }
  }
}

/// Where the next piece is: behind this one, at the next part, or here again.
void MapScan::clean_up() noexcept {
  switch (status()) {
    case Status::ok:
    case Status::half_written:
      slot_ += count_;
      if (slot_ != map_.sizes[level_]) break;
      slot_ = 0;
      if (++level_ == map_.known[home_]) next_part();
      break;
    case Status::lost:
    case Status::refused:
    case Status::no_room:
      found_.clear();
      next_part();
      break;
    default:
      found_.clear();
      break;
  }
  if (check_ != nullptr) give_up_check();
}

const std::byte* MapScan::payload_of(std::size_t i) noexcept {
  const std::byte* const slot =
      std::as_bytes(std::span(window_)).data() + std::size_t{found_[i]} * map_.shape.slot_bytes;
  decode(map_.shape, slot, 0, map_.shape.payload_bytes, payload_.data());
  return payload_.data();
}

}  // namespace dunlin::container
