#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "store/state.hpp"

/// The knowledge of a home's index: how many main headers it has, and where its extents are. A
/// home adds main headers and never moves one, so what is known stays true; that a key has moved to
/// a later main header is seen in its former one.
namespace dunlin::store {

using remote::Status;

namespace {

[[nodiscard]] std::uint64_t word_in(const std::byte* bytes, std::uint64_t at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}
[[nodiscard]] std::uint64_t extents_for(std::uint64_t base, std::uint64_t headers) noexcept {
  return (headers - base + kExtentHeaders - 1) / kExtentHeaders;
}

}  // namespace

Place State::main_header(Rank rank, std::uint64_t number) const noexcept {
  const Home& home = homes[rank];
  if (number < home.shape.base()) return {.in_slabs = false, .offset = main_header_at(number)};
  const std::uint64_t later = number - home.shape.base();
  return {
      .in_slabs = true,
      .offset = home.extents[later / kExtentHeaders] + later % kExtentHeaders * sizeof(MainHeader)};
}

/// There is a main header with the number that is returned. If it is not where the others are, or
/// many more are to be expected, the home's own figures are read.
std::uint64_t State::learn_split(Rank rank, std::uint64_t position, std::uint64_t number,
                                 std::uint32_t depth) noexcept {
  Home& home = homes[rank];
  const std::uint64_t next = home.shape.next_of(position, number, depth);
  home.has_grown = home.has_grown || depth > home.shape.depth_of(position) + 1;
  if (extents_for(home.shape.base(), next + 1) > home.extents.size())
    home.has_grown = true;
  else
    home.shape.grow_to(next + 1);
  if (home.has_grown) home.usable_in = UINT64_MAX;
  return next;
}

/// `ok`, or why the home cannot be used; `under_way`: one read for all calls has not ended yet.
Status State::know_index(Rank rank) noexcept {
  Home& home = homes[rank];
  if (home.is_client || home.refused) return Status::refused;
  if (home.shape.headers() != 0 && !home.has_grown) return Status::ok;
  using Reading = IndexReading::Stage;
  IndexReading& reading = home.reading;
  const auto begin = [&](std::uint64_t at, std::size_t bytes, Reading stage) {
    reading.in.reserve(bytes);
    reading.done.reset();
    const Refusal refusal =
        fabric.post(read(rank, index.id(), at, reading.in.data(), bytes).notify(reading.done))
            .refusal;
    reading.stage = refusal == Refusal::none ? stage : Reading::none;
    return refusal == Refusal::none || remote::is_for_now(refusal) ? Status::under_way
                                                                   : Status::refused;
  };
  Status now = Status::under_way;
  if (reading.stage == Reading::none) now = begin(0, kIndexHeaderBytes, Reading::header);
  while (now == Status::under_way && reading.stage != Reading::none && reading.done.finished()) {
    const Reading stage = std::exchange(reading.stage, Reading::none);
    if (reading.done.failed()) return Status::lost;
    if (stage == Reading::directory) take_directory(rank);
    if (stage == Reading::header && !take_header(rank, reading.in.data())) return Status::refused;
    const std::uint64_t known = home.extents.size();
    const std::uint64_t all = extents_for(home.shape.base(), reading.headers);
    if (all <= known) {
      home.shape.grow_to(reading.headers);
      home.has_grown = false;
      return Status::ok;
    }
    now = begin(extent_word_at(home.shape.base(), known), (all - known) * kWordBytes,
                Reading::directory);
  }
  return now;
}

/// Whether it is the header of a store's index.
bool State::take_header(Rank rank, const std::byte* header) noexcept {
  Home& home = homes[rank];
  const std::uint64_t base = word_in(header, kBaseAt);
  const std::uint64_t headers = word_in(header, kMainHeadersAt);
  home.is_client = word_in(header, 0) == kMagic && base == 0;
  if (word_in(header, 0) != kMagic || base == 0 || base > UINT32_MAX || headers < base ||
      headers > std::uint64_t{1} << IndexShape::kPositionBits)
    return false;
  if (home.shape.headers() == 0) home.shape = IndexShape(base);
  if (home.shape.base() != base) return false;
  home.reading.headers = headers;
  home.ranks = word_in(header, kRanksAt);
  if (word_in(header, kClockAt) != 0) sample_clock(rank, word_in(header, kClockAt));
  return true;
}

void State::take_directory(Rank rank) noexcept {
  Home& home = homes[rank];
  const std::uint64_t all = extents_for(home.shape.base(), home.reading.headers);
  for (std::uint64_t i = 0; home.extents.size() < all; ++i)
    home.extents.push_back(word_in(home.reading.in.data(), i * kWordBytes));
}

}  // namespace dunlin::store
