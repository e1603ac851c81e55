#include <cstddef>
#include <cstdint>
#include <cstring>

#include "daemon/hostile.hpp"

/// What a client of the daemon writes into its shared memory is the fuzzer's: each 72 bytes of the
/// input are a request, and a word somewhere in the buffers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using dunlin::attached::Request;
  static dunlin::test::Hostile hostile;
  hostile.begin();
  constexpr std::size_t kPiece = sizeof(Request) + 8;
  for (std::size_t at = 0; at + kPiece <= bytes && !hostile.broke_off(); at += kPiece) {
    Request request;
    std::memcpy(&request, data + at, sizeof request);
    std::uint64_t word = 0;
    std::memcpy(&word, data + at + sizeof request, sizeof word);
    const std::size_t buffers = hostile.kLayout.buffer_at(0);
    const std::size_t place = word % ((hostile.memory().size() - buffers) / 8) * 8;
    auto* const there = hostile.memory().data() + buffers + place;
    dunlin::memory::store(*reinterpret_cast<std::uint64_t*>(there), request.argument);
    hostile.ask(request);
    if (word >> 63 != 0) hostile.settle();
  }
  hostile.end();
  if (!hostile.others_are_well()) __builtin_trap();
  return 0;
}
