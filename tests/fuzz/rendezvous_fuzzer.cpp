#include <cstddef>
#include <cstdint>

#include "fabric/rendezvous_fuzz.hpp"

namespace {

using namespace dunlin::rendezvous;

/// Zeros are the right bytes: what a fuzzer has to find is what differs from them.
std::vector<std::byte> changed(std::vector<std::byte> right, Bytes by) {
  if (by.size() > right.size()) right.resize(by.size());
  for (std::size_t i = 0; i < by.size(); ++i) right[i] ^= by[i];
  return right;
}

/// All flights that `self` hears in a conversation, one behind the other, are changed.
void change_conversation(Side self, Bytes by, std::size_t piece_bytes) {
  fuzz::converse(self, piece_bytes, [&](std::vector<std::byte> flight) {
    const Bytes here = by.first(std::min(by.size(), flight.size()));
    by = by.subspan(here.size());
    return changed(std::move(flight), here);
  });
}

}  // namespace

/// The first byte says which part of a rendezvous gets the others, the second how they are cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Conversation right = fuzz::right_conversation();
  if (size < 2) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t piece_bytes = std::size_t{data[1]} + 1;
  switch (data[0] % 9) {
    case 0:
      change_conversation(Side::host, bytes, piece_bytes);
      break;
    case 1:
      change_conversation(Side::joiner, bytes, piece_bytes);
      break;
    case 2:
      fuzz::feed_handshake(Side::host, bytes, piece_bytes);
      break;
    case 3:
      fuzz::feed_handshake(Side::joiner, bytes, piece_bytes);
      break;
    case 4:
      fuzz::feed_reader(Side::joiner, changed(fuzz::encoded(right.of_joiner), bytes), piece_bytes);
      break;
    case 5:
      fuzz::feed_reader(Side::host, changed(fuzz::encoded(right.of_host), bytes), piece_bytes);
      break;
    case 6:
      fuzz::feed_visit(bytes);
      break;
    case 7:
      fuzz::feed_visit(changed(fuzz::bytes_from(right.of_host), bytes));
      break;
    default:
      fuzz::feed_builder(bytes);
  }
  return 0;
}
