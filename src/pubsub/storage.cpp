#include "pubsub/storage.hpp"

#include <algorithm>
#include <utility>

#include "assert.hpp"

namespace dunlin::pubsub {

/// Drops a sample. `adding`: the hash of the key whose sample comes next; its place stays.
void Storage::drop(Place place, std::uint64_t adding) {
  if (keeps_last()) {
    const auto of_key = by_key_.find(place->header.key_hash);
    DUNLIN_ASSERT(of_key != by_key_.end() && of_key->second.front() == place,
                  "PUB-T2: the stored samples of a key go in their order");
    of_key->second.pop_front();  // no sample of a key goes before an older one
    if (of_key->second.empty() && of_key->first != adding) by_key_.erase(of_key);
  }
  DUNLIN_ASSERT(kept_ > 0 && place->kept() && bytes_ >= place->payload.size(),
                "PUB-T5: a sample is overtaken once");
  bytes_ -= place->payload.size();
  --kept_;
  place->dropped_at = ways_begun_ + 1;
  while (oldest_ != samples_.end() && !oldest_->kept()) ++oldest_;
  if (place->number < first_needed()) [[likely]]
    return remove(place);
  overtaken_.emplace(place->number, place);
  overtaken_bytes_ += place->payload.size();
}

void Storage::remove(Place place) {
  const auto newest = newest_.find(place->header.key_hash);
  if (newest != newest_.end() && newest->second == place) newest_.erase(newest);
  place->writer.reset();
  place->unregistered.clear();
  if (free_.empty())
    free_.splice(free_.end(), samples_, place);
  else
    samples_.erase(place);
}

/// Samples below the returned number lie behind all ways.
std::uint64_t Storage::first_needed() const noexcept {
  std::uint64_t first = added_ + 1;
  for (const Way& way : ways_)
    if (way.next != samples_.end()) first = std::min(first, way.next->number);
  return first;
}

void Storage::expire(std::uint64_t now_ns, std::uint64_t adding) {
  if (max_age_ns_ == kInfiniteNs) [[likely]]
    return;
  while (kept_ > 0 && now_ns > oldest_->received_ns && now_ns - oldest_->received_ns >= max_age_ns_)
    drop(oldest_, adding);
}

/// Makes a place at the end. Old samples go, once there are enough.
Storage::Place Storage::make_place(std::uint64_t key_hash, std::size_t bytes) {
  if (keeps_last()) {
    const std::deque<Place>& of_key = by_key_[key_hash];
    if (of_key.size() >= history_.depth) drop(of_key.front(), key_hash);
  }
  const auto is_full = [&] {
    return kept_ >= max_samples_ || (max_bytes_ != 0 && bytes_ + bytes > max_bytes_);
  };
  while (kept_ > 0 && is_full()) drop(oldest_, key_hash);
  if (free_.empty())
    samples_.emplace_back();
  else
    samples_.splice(samples_.end(), free_, free_.begin());
  const Place place = std::prev(samples_.end());
  if (kept_++ == 0) oldest_ = place;
  if (keeps_last()) by_key_[key_hash].push_back(place);
  return place;
}

void Storage::add(const Incoming& in, const std::shared_ptr<RemoteWriter>& writer) {
  if (in.header.kind == Kind::unregister) return note_unregistered(in.header.key_hash, writer);
  expire(in.received_ns, in.header.key_hash);
  // The node of the map stays, also if the sample before it goes now.
  Place& newest = newest_.try_emplace(in.header.key_hash).first->second;
  newest = samples_.end();
  newest = make_place(in.header.key_hash, in.payload.size());
  Stored& stored = *newest;
  stored.header = in.header;
  stored.writer = writer;
  stored.received_ns = in.received_ns;
  stored.position = in.position;
  stored.order_position = in.order_position;
  stored.payload.assign(in.payload.begin(), in.payload.end());
  stored.number = ++added_;
  stored.dropped_at = 0;
  bytes_ += in.payload.size();
}

/// Writers that are gone have unregistered all their instances anyway.
void Storage::note_unregistered(std::uint64_t key_hash,
                                const std::shared_ptr<RemoteWriter>& writer) {
  const auto newest = newest_.find(key_hash);
  if (newest == newest_.end()) return;
  auto& all = newest->second->unregistered;
  std::erase_if(all, [&](const auto& one) { return one->gone || one == writer; });
  all.push_back(writer);
}

// --- a late reader's way -------------------------------------------------------------------------

Storage::WayPlace Storage::begin_way() {
  DUNLIN_ASSERT((kept_ == 0) == (oldest_ == samples_.end()),
                "PUB-T2: a late reader begins with the oldest sample that is kept");
  return ways_.insert(ways_.end(), Way{.next = oldest_, .number = ++ways_begun_});
}

/// Samples that were dropped before the way began are not on it.
const Storage::Stored* Storage::next(WayPlace way) noexcept {
  while (way->next != samples_.end() && !way->next->kept() && way->next->dropped_at <= way->number)
    ++way->next;
  return way->next != samples_.end() ? &*way->next : nullptr;
}

bool Storage::lies_ahead(WayPlace way, std::uint64_t key_hash) const noexcept {
  const auto newest = newest_.find(key_hash);
  return newest != newest_.end() && way->next != samples_.end() &&
         way->next->number <= newest->second->number;
}

void Storage::end_way(WayPlace way) {
  ways_.erase(way);
  let_go_of_overtaken();
}

void Storage::let_go_of_overtaken() {
  const std::uint64_t needed = first_needed();
  while (!overtaken_.empty() && overtaken_.begin()->first < needed) {
    const Place place = overtaken_.begin()->second;
    overtaken_.erase(overtaken_.begin());
    overtaken_bytes_ -= place->payload.size();
    remove(place);
  }
}

}  // namespace dunlin::pubsub
