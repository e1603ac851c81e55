#include <cstddef>
#include <cstdint>

#include "fabric/meeting_fuzz.hpp"

namespace {

using namespace dunlin::meeting;

/// Zeros are the right conversation: what a fuzzer has to find is what differs from it.
std::vector<std::byte> changed(std::vector<std::byte> right, Bytes by) {
  if (by.size() > right.size()) right.resize(by.size());
  for (std::size_t i = 0; i < by.size(); ++i) right[i] ^= by[i];
  return right;
}

}  // namespace

/// The first byte says which part of a meeting gets the others, the second how they are cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Conversation right = fuzz::conversation();
  if (size < 2) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t piece_bytes = std::size_t{data[1]} + 1;
  switch (data[0] % 7) {
    case 0:
      fuzz::feed_channel(Side::host, changed(right.of_guest, bytes), piece_bytes, right);
      break;
    case 1:
      fuzz::feed_channel(Side::guest, changed(right.of_host, bytes), piece_bytes, right);
      break;
    case 2:
      fuzz::feed_channel(Side::host, bytes, piece_bytes, right);
      break;
    case 3:
      fuzz::feed_channel(Side::guest, bytes, piece_bytes, right);
      break;
    case 4:
      fuzz::feed_visit(bytes);
      break;
    case 5:
      fuzz::feed_visit(changed(fuzz::bytes_from(right.frames_of_host), bytes));
      break;
    default:
      fuzz::feed_gathering(bytes);
  }
  return 0;
}
