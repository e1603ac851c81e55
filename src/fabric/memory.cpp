#include <dunlin/fabric/memory.hpp>

#include "fabric/memory_pairs.hpp"

namespace dunlin::memory::detail {
namespace {

const bool kPairs = pairs_are_atomic();

std::uintptr_t address(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }

template <class U>
void copy_piece(std::byte* to, const std::byte* from) noexcept {
  store_raw<U>(to, load_raw<U>(from));
}

void copy_piece(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  switch (bytes) {
    case 1:
      return copy_piece<std::uint8_t>(to, from);
    case 2:
      return copy_piece<std::uint16_t>(to, from);
    case 4:
      return copy_piece<std::uint32_t>(to, from);
    default:
      return copy_piece<std::uint64_t>(to, from);
  }
}

/// The largest power of two up to a word that `at` is aligned to.
std::size_t alignment(const std::byte* at) noexcept {
  return std::size_t{1} << std::countr_zero(address(at) | kWordBytes);
}

/// The largest aligned piece that starts at `at` and fits into `bytes`.
std::size_t first_piece(const std::byte* at, std::size_t bytes) noexcept {
  const std::size_t aligned = alignment(at);
  return aligned <= bytes ? aligned : std::bit_floor(bytes);
}

/// The largest aligned piece that ends at `end` and fits into `bytes`.
std::size_t last_piece(const std::byte* end, std::size_t bytes) noexcept {
  return first_piece(end, bytes);
}

/// Copies the bytes before the first whole word, or all if there is no whole word.
std::size_t place_edge(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t piece = first_piece(to + done, bytes - done);
    if (piece == kWordBytes) break;
    copy_piece(to + done, from + done, piece);
    done += piece;
  }
  return done;
}

void place_words(std::byte* to, const std::byte* from, std::size_t words) noexcept {
  std::size_t i = 0;
  if (kPairs && words >= kLineWords) {
    if (address(to) % kPairBytes != 0) copy_piece<std::uint64_t>(to, from), ++i;
    const std::size_t lines = (words - i) / kLineWords;
    place_lines(to + i * kWordBytes, from + i * kWordBytes, lines);
    i += lines * kLineWords;
  }
  for (; i < words; ++i) copy_piece<std::uint64_t>(to + i * kWordBytes, from + i * kWordBytes);
}

/// Reads a whole aligned line, downwards.
void fetch_line(std::byte* to, const std::byte* from) noexcept {
  for (std::size_t i = kCacheLineBytes; i != 0; i -= kWordBytes)
    copy_piece<std::uint64_t>(to + i - kWordBytes, from + i - kWordBytes);
}

/// Whether it is nothing but whole words.
bool is_words(const std::byte* at, std::size_t bytes) noexcept {
  return (address(at) | bytes) % kWordBytes == 0;
}

/// Reads a part of a line, downwards.
void fetch_part(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (is_words(from, bytes)) {
    for (; bytes > 0; bytes -= kWordBytes)
      copy_piece<std::uint64_t>(to + bytes - kWordBytes, from + bytes - kWordBytes);
    return;
  }
  while (bytes > 0) {
    const std::size_t piece = last_piece(from + bytes, bytes);
    bytes -= piece;
    copy_piece(to + bytes, from + bytes, piece);
  }
}

/// Copies the bytes around the whole words, and lets `copy` copy these.
template <class Copy>
void in_pieces(void* to, const void* source, std::size_t bytes, const Copy& copy) noexcept {
  auto* target = static_cast<std::byte*>(to);
  const auto* from = static_cast<const std::byte*>(source);
  if (is_words(target, bytes)) return copy(target, from, bytes / kWordBytes);
  const std::size_t head = place_edge(target, from, bytes);
  const std::size_t words = (bytes - head) / kWordBytes;
  copy(target + head, from + head, words);
  const std::size_t done = head + words * kWordBytes;
  place_edge(target + done, from + done, bytes - done);
}

}  // namespace

void place_pieces(void* to, const void* source, std::size_t bytes) noexcept {
  in_pieces(to, source, bytes, place_words);
}

void copy_wide(void* to, const void* from, std::size_t bytes) noexcept {
  in_pieces(to, from, bytes, kPairs ? copy_words : place_words);
}

void fetch_pieces(void* to, const void* from, std::size_t bytes) noexcept {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::size_t left_in_line = kCacheLineBytes - address(source) % kCacheLineBytes;
    std::size_t part = bytes < left_in_line ? bytes : left_in_line;
    if (part == kCacheLineBytes && kPairs) {
      part = bytes - bytes % kCacheLineBytes;
      fetch_lines(target, source, part / kCacheLineBytes);
    } else if (part == kCacheLineBytes) {
      fetch_line(target, source);
    } else {
      fetch_part(target, source, part);
    }
    target += part;
    source += part;
    bytes -= part;
  }
}

}  // namespace dunlin::memory::detail
