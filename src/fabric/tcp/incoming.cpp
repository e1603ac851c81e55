#include "fabric/tcp/incoming.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::tcp {
namespace {

/// How much to read at once before a frame is known: enough for a prefix and a frame of some puts
/// whose bytes are behind it. The fewer of those bytes come along, the fewer are copied.
constexpr std::size_t kPeekBytes = 1024;
/// If only so few bytes are behind a frame, they are copied: that is faster than a second call that
/// receives them into their place.
constexpr std::size_t kWorthACallBytes = 16'384;

}  // namespace

std::byte* Scratch::bin() {
  if (!bin_) bin_ = std::make_unique_for_overwrite<std::byte[]>(kMaxBehindBytes + kWordBytes);
  return bin_.get();
}

std::size_t Incoming::part_bytes() const noexcept {
  switch (part_) {
    case Part::prefix:
      return sizeof prefix_;
    case Part::frame:
      return prefix_.frame_bytes;
    case Part::behind:
      break;
  }
  return stream::whole_words(prefix_.behind_bytes);
}

std::size_t Incoming::scratch_bytes() const noexcept {
  // Until the next prefix is known, the next frame is assumed to be like the last one.
  return prefix_.behind_bytes > kWorthACallBytes ? kPeekBytes : Scratch::kBytes;
}

std::span<const iovec> Incoming::wanted(Scratch& scratch) {
  piece_count_ = 0;
  own_bytes_ = 0;
  own_pieces(scratch);
  for (std::size_t i = 0; i < piece_count_; ++i) own_bytes_ += pieces_[i].iov_len;
  // The bytes behind the part begin there, on a whole word, as all parts have whole words.
  if (have_ + own_bytes_ == part_bytes() || piece_count_ == 0)
    pieces_[piece_count_++] = {scratch.room(), scratch_bytes()};
  return std::span(pieces_).first(piece_count_);
}

/// Adds the pieces for the rest of the part, if its beginning is here.
void Incoming::own_pieces(Scratch& scratch) {
  switch (part_) {
    case Part::prefix:
      if (have_ > 0)
        pieces_[piece_count_++] = {reinterpret_cast<std::byte*>(&prefix_) + have_,
                                   sizeof prefix_ - have_};
      return;
    case Part::frame:
      keep_frames();
      pieces_[piece_count_++] = {frame_.get() + have_, prefix_.frame_bytes - have_};
      return;
    case Part::behind:
      break;
  }
  std::size_t filled = place_have_;
  for (std::size_t i = place_; i < places_.size() && piece_count_ < kMaxPieces - 1; ++i) {
    const stream::Place& place = places_[i];
    std::byte* const at = place.at == nullptr ? scratch.bin() : place.at + filled;
    pieces_[piece_count_++] = {at, place.bytes - filled};
    filled = 0;
  }
}

void Incoming::keep_frames() {
  if (!frame_) frame_ = std::make_unique_for_overwrite<std::byte[]>(stream::kMaxFrameBytes);
}

bool Incoming::take(std::size_t bytes, Rank from, stream::Receiver& receiver, Scratch& scratch) {
  const std::size_t own = std::min(bytes, own_bytes_);
  if (own > 0) {
    count(own);
    if (have_ == part_bytes() && !finish_part(from, receiver)) return false;
  }
  std::span<const std::byte> rest(scratch.room(), bytes - own);
  while (!rest.empty()) {
    if (part_ == Part::frame && have_ == 0 && rest.size() >= prefix_.frame_bytes) {
      const std::span<const std::byte> frame = rest.first(prefix_.frame_bytes);
      rest = rest.subspan(frame.size());
      if (!finish_frame(frame, from, receiver)) return false;
      continue;
    }
    copy_from(rest);
    if (have_ == part_bytes() && !finish_part(from, receiver)) return false;
  }
  return true;
}

void Incoming::count(std::size_t bytes) noexcept {
  have_ += bytes;
  if (part_ != Part::behind) return;
  for (place_have_ += bytes; place_ < places_.size() && place_have_ >= places_[place_].bytes;)
    place_have_ -= places_[place_++].bytes;
}

/// Takes the bytes of the part from the front of the content.
void Incoming::copy_from(std::span<const std::byte>& content) {
  std::size_t piece = std::min(content.size(), part_bytes() - have_);
  if (part_ == Part::prefix) {
    std::memcpy(reinterpret_cast<std::byte*>(&prefix_) + have_, content.data(), piece);
  } else if (part_ == Part::frame) {
    keep_frames();
    std::memcpy(frame_.get() + have_, content.data(), piece);
  } else {
    const stream::Place& place = places_[place_];
    piece = std::min(piece, place.bytes - place_have_);
    if (place.at != nullptr) memory::copy_unwatched(place.at + place_have_, content.data(), piece);
  }
  content = content.subspan(piece);
  count(piece);
}

bool Incoming::finish_part(Rank from, stream::Receiver& receiver) {
  have_ = 0;
  switch (part_) {
    case Part::prefix:
      part_ = Part::frame;
      return is_possible(prefix_);
    case Part::frame:
      return finish_frame({frame_.get(), prefix_.frame_bytes}, from, receiver);
    case Part::behind:
      break;
  }
  return hand_over({frame_.get(), prefix_.frame_bytes}, from, receiver);
}

bool Incoming::finish_frame(std::span<const std::byte> frame, Rank from,
                            stream::Receiver& receiver) {
  if (prefix_.behind_bytes == 0) return hand_over(frame, from, receiver);
  keep_frames();
  if (frame.data() != frame_.get()) std::memcpy(frame_.get(), frame.data(), frame.size());
  places_.clear();
  place_ = place_have_ = 0;
  if (!receiver.find_places(from, {frame_.get(), frame.size()}, places_)) return false;
  const std::size_t found = std::accumulate(
      places_.begin(), places_.end(), std::size_t{0},
      [](std::size_t sum, const stream::Place& place) { return sum + place.bytes; });
  if (found != prefix_.behind_bytes) return false;
  if (const std::size_t padding = padding_of(found); padding > 0)
    places_.push_back({nullptr, padding});
  part_ = Part::behind;
  have_ = 0;
  return true;
}

bool Incoming::hand_over(std::span<const std::byte> frame, Rank from, stream::Receiver& receiver) {
  part_ = Part::prefix;
  have_ = 0;
  places_.clear();
  receiver.take_frame(from, frame);
  return !closed_;
}

void Incoming::forget_places(std::span<const std::byte> memory) noexcept {
  for (stream::Place& place : places_)
    if (place.at >= memory.data() && place.at < memory.data() + memory.size()) place.at = nullptr;
}

void Incoming::close() noexcept { closed_ = true; }

}  // namespace dunlin::tcp
