#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store_command/session_fuzz.hpp"

/// What a client of `dunlin store serve` sends. The first byte says how the store behaves, the
/// second how the bytes are cut, and the third how many of them are the contents of a hash and of a
/// sorted set that any member of the store may have written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using dunlin::test::Ending;
  constexpr std::size_t kHeaderBytes = 3;
  if (size < kHeaderBytes) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + kHeaderBytes,
                              size - kHeaderBytes);
  const std::size_t stored = data[2] < rest.size() ? data[2] : rest.size();
  dunlin::test::SessionFuzz fuzz{.bytes = rest.substr(stored),
                                 .piece_bytes = std::size_t{data[1]} + 1,
                                 .stored = rest.substr(0, stored)};
  if ((data[0] & 0xf0) == 0xf0) fuzz.has_password = true;
  if ((data[0] & 0x0f) == 0x0f) fuzz.ending = Ending::lost;
  if ((data[0] & 0x0f) == 0x0e) fuzz.ending = Ending::no_room;
  if (!fuzz.requests_are_the_same() || !fuzz.replies_are_the_same()) __builtin_trap();
  return 0;
}
