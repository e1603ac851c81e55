#include "log/tail_reader.hpp"

#include <algorithm>

#include "log/segment.hpp"

namespace dunlin::log {
namespace {
/// A step wants little, so it reads little ahead.
constexpr std::size_t kStepPieceBytes = std::size_t{64} << 10U;
}  // namespace

bool TailReader::resume() {
  if (wanted_ < log_.first()) return false;
  const auto here = std::ranges::find(log_.segments_, segment_first_, &Log::Segment::first);
  const bool is_there = here != log_.segments_.end() && cursor_.has_value() &&
                        file_name_ == log_.name_of_segment(segment_first_);
  if (is_there) {
    cursor_->look_again();
  } else {
    const Log::Segment& segment = log_.segment_of(wanted_);
    open(static_cast<std::size_t>(&segment - log_.segments_.data()));
  }
  return true;
}

void TailReader::open(std::size_t segment) {
  const Log::Segment& at = log_.segments_[segment];
  segment_first_ = at.first;
  file_name_ = log_.name_of_segment(at.first);
  file_ = log_.directory_->open(file_name_);
  cursor_.emplace(*file_, log_.check_seed(), at.first, at.chain, kStepPieceBytes);
}

std::optional<Record> TailReader::next() {
  if (cursor_->number() >= log_.next()) return std::nullopt;
  const auto after =
      std::ranges::upper_bound(log_.segments_, segment_first_, {}, &Log::Segment::first);
  if (after != log_.segments_.end() && after->first == cursor_->number())
    open(static_cast<std::size_t>(after - log_.segments_.begin()));
  std::optional<Record> record = cursor_->next();
  if (!record)
    log_.refuse("'" + log_.directory_->path() + "/" + file_name_ + "' at offset " +
                std::to_string(cursor_->offset()) + ": record " +
                std::to_string(cursor_->number()) +
                " is damaged; it was whole when it was written");
  if (record->number == wanted_) ++wanted_;
  return record;
}

}  // namespace dunlin::log
