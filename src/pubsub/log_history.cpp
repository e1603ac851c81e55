#include "pubsub/log_history.hpp"

#include <algorithm>

#include "assert.hpp"

namespace dunlin::pubsub {
namespace {

/// Whether samples of either writer may be taken for the other's once both are gone. The age of a
/// sample counts from its writer's newest sample, so a lifespan tells the writers apart.
[[nodiscard]] bool are_alike(const RemoteWriter& a, const RemoteWriter& b) noexcept {
  return a.gone && b.gone && a.refused == b.refused && a.qos == b.qos &&
         a.type_text == b.type_text && a.qos.lifespan.duration_ns == kInfiniteNs;
}

void write_counts(Writer& to, const LogHistory::Counts& counts) {
  to.u64(counts.samples);
  to.u64(counts.bytes);
  to.u64(counts.position);
}

[[nodiscard]] LogHistory::Counts read_counts(Reader& from) {
  LogHistory::Counts counts;
  counts.samples = from.u64();
  counts.bytes = from.u64();
  counts.position = from.u64();
  return counts;
}

}  // namespace

void LogHistory::announce(std::uint64_t record, std::shared_ptr<RemoteWriter> writer) {
  add({.announced = record, .writer = std::move(writer)});
}

void LogHistory::add(Incarnation one) {
  writers_[{one.writer->member, one.writer->number}].push_back(std::move(one));
}

void LogHistory::add(std::size_t payload_bytes, RemoteWriter& writer, std::uint64_t position,
                     std::uint64_t now_ns, std::uint64_t source_ns) noexcept {
  ++counts_.samples;
  counts_.bytes += payload_bytes;
  counts_.position = position;
  writer.newest_sample = counts_.samples;
  writer.newest_source_ns = source_ns;
  writer.newest_received_ns = now_ns;
}

void LogHistory::add_landmark(const multicast::LogPosition& at) {
  const bool same_members = !landmarks_.empty() && *landmarks_.back().members == at.members;
  landmarks_.push_back(
      {.before = counts_,
       .number = at.number,
       .from = at.from,
       .view = at.view,
       .members = same_members ? landmarks_.back().members
                               : std::make_shared<const std::vector<std::string>>(at.members)});
}

/// Adds a landmark (PUB-K2).
void LogHistory::mark(const multicast::LogPosition& at, const InUse& in_use) {
  add_landmark(at);
  landmarks_.erase(landmarks_.begin(),
                   landmarks_.begin() + static_cast<std::ptrdiff_t>(first_kept()));
  if (landmarks_.size() > kMaxLandmarks) {
    for (std::size_t i = 1; 2 * i < landmarks_.size(); ++i) landmarks_[i] = landmarks_[2 * i];
    landmarks_.resize((landmarks_.size() + 1) / 2);
    apart_ *= 2;
  }
  DUNLIN_ASSERT_ALWAYS(!landmarks_.empty() && landmarks_.size() <= kMaxLandmarks,
                       "PUB-K2: landmarks are bounded, and the first one stays");
  const std::uint64_t record = std::min(landmarks_.front().from, in_use.record);
  while (!passed_over_.empty() && passed_over_.front() < record) passed_over_.pop_front();
  forget_writers(std::min(landmarks_.front().before.samples, in_use.samples));
}

/// Forgets writers that are gone, and whose last samples are among the first `samples`, which are
/// not kept.
void LogHistory::forget_writers(std::uint64_t samples) {
  for (auto of_id = writers_.begin(); of_id != writers_.end();) {
    std::vector<Incarnation>& all = of_id->second;
    std::erase_if(all, [&](const Incarnation& one) {
      return one.writer->gone && one.writer->newest_sample <= samples;
    });
    for (std::size_t i = 1; i < all.size();) {
      RemoteWriter& older = *all[i - 1].writer;
      const RemoteWriter& newer = *all[i].writer;
      if (!are_alike(older, newer)) {
        ++i;
        continue;
      }
      older.newest_sample = newer.newest_sample;
      older.newest_source_ns = newer.newest_source_ns;
      older.newest_received_ns = newer.newest_received_ns;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
    of_id = all.empty() ? writers_.erase(of_id) : std::next(of_id);
  }
}

/// Whether the sample before the landmark is not kept, because too many samples or bytes lie behind
/// it.
bool LogHistory::lies_before_kept(const Landmark& landmark) const noexcept {
  const bool by_samples =
      max_samples_ != kAllSamples && counts_.samples - landmark.before.samples >= max_samples_;
  return by_samples || (max_bytes_ != 0 && counts_.bytes - landmark.before.bytes > max_bytes_);
}

std::size_t LogHistory::first_kept() const noexcept {
  const auto behind = std::ranges::partition_point(
      landmarks_, [this](const Landmark& landmark) { return lies_before_kept(landmark); });
  return behind == landmarks_.begin() ? 0
                                      : static_cast<std::size_t>(behind - landmarks_.begin()) - 1;
}

const LogHistory::Landmark* LogHistory::first_from(std::uint64_t record) const noexcept {
  const auto found = std::ranges::lower_bound(landmarks_, record, {}, &Landmark::from);
  return found == landmarks_.end() ? nullptr : &*found;
}

bool LogHistory::gives(const Counts& before, const Counts& place) const noexcept {
  if (before.samples + 1 >= place.samples) return true;  // the newest sample, and later ones
  if (max_samples_ != kAllSamples && place.samples - before.samples > max_samples_) return false;
  return max_bytes_ == 0 || place.bytes - before.bytes <= max_bytes_;
}

bool LogHistory::is_passed_over(std::uint64_t record) const noexcept {
  return std::ranges::binary_search(passed_over_, record);
}

std::shared_ptr<RemoteWriter> LogHistory::writer_of(std::string_view member, std::uint16_t number,
                                                    std::uint64_t record) const {
  const auto all = writers_.find({member, number});
  if (all == writers_.end()) return nullptr;
  const auto after = std::ranges::lower_bound(all->second, record, {}, &Incarnation::announced);
  return after == all->second.begin() ? nullptr : std::prev(after)->writer;
}

void LogHistory::save(Writer& to) const {
  write_counts(to, counts_);
  to.u64(apart_);
  to.u32(static_cast<std::uint32_t>(passed_over_.size()));
  for (const std::uint64_t record : passed_over_) to.u64(record);
  const std::size_t first = landmarks_.empty() ? 0 : first_kept();
  to.u32(static_cast<std::uint32_t>(landmarks_.size() - first));
  const std::vector<std::string>* members = nullptr;
  for (std::size_t i = first; i < landmarks_.size(); ++i) {
    const Landmark& landmark = landmarks_[i];
    write_counts(to, landmark.before);
    to.u64(landmark.number);
    to.u64(landmark.from);
    to.u64(landmark.view);
    const bool same = members == landmark.members.get();
    to.u32(same ? UINT32_MAX : static_cast<std::uint32_t>(landmark.members->size()));
    members = landmark.members.get();
    if (!same)
      for (const std::string& member : *members) to.text(member);
  }
}

bool LogHistory::load(Reader& from) {
  counts_ = read_counts(from);
  apart_ = std::max<std::uint64_t>(from.u64(), 1);
  passed_over_.clear();
  for (std::uint32_t left = from.u32(); left > 0 && from.good(); --left)
    passed_over_.push_back(from.u64());
  landmarks_.clear();
  for (std::uint32_t left = from.u32(); left > 0 && from.good(); --left) {
    Landmark landmark;
    landmark.before = read_counts(from);
    landmark.number = from.u64();
    landmark.from = from.u64();
    landmark.view = from.u64();
    const std::uint32_t members = from.u32();
    if (members == UINT32_MAX) {
      if (landmarks_.empty()) return false;
      landmark.members = landmarks_.back().members;
    } else {
      std::vector<std::string> names;
      for (std::uint32_t i = 0; i < members && from.good(); ++i) names.push_back(from.text());
      landmark.members = std::make_shared<const std::vector<std::string>>(std::move(names));
    }
    landmarks_.push_back(std::move(landmark));
  }
  return from.good() && landmarks_.size() <= kMaxLandmarks + 1 &&
         (counts_.samples == 0 || !landmarks_.empty()) &&
         std::ranges::is_sorted(landmarks_, {}, &Landmark::from) &&
         std::ranges::is_sorted(passed_over_);
}

std::size_t LogHistory::size() const noexcept {
  std::size_t size = landmarks_.size() + passed_over_.size();
  for (const auto& [id, incarnations] : writers_) size += incarnations.size();
  return size;
}

}  // namespace dunlin::pubsub
