#include <cstddef>
#include <cstdint>

#include "relay/frame_fuzz.hpp"

/// What the other side of a relay's connection sends: the first byte says which side that is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto from = (data[0] & 1) == 0 ? dunlin::relay::Side::client : dunlin::relay::Side::relay;
  static_cast<void>(
      dunlin::test::read_all_frames(std::as_bytes(std::span(data + 1, size - 1)), from));
  return 0;
}
