#include <cstddef>
#include <cstdint>

#include "fabric/stream/scripted_peer.hpp"

namespace {

using namespace dunlin::stream;
using dunlin::stream::test::Bytes;
using dunlin::stream::test::ScriptedPeer;

/// As in a sound frame, so that not every input is lost to a rule of the lengths.
constexpr std::size_t kLengthBytes = 2;

}  // namespace

/// What a member whose proof was right says afterwards: frames, each with its length in words
/// before it. A box is announced on both sides, and operations of ours wait for answers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ScriptedPeer peer;
  const dunlin::Region box = peer.announce_box();
  const dunlin::Region guard = peer.fabric->allocate({.name = "guard", .bytes = 4096});
  peer.announce_theirs();
  peer.fabric->receive(1, [](dunlin::Rank, std::span<const std::byte>) {});
  alignas(8) std::array<std::byte, 64> target{};
  dunlin::Completion done;
  static_cast<void>(peer.fabric->post(read(1, box.id(), 8, target.data(), 64).notify(done)));
  static_cast<void>(peer.fabric->post(fetch_add(1, box.id(), 0, 1, nullptr).notify(done)));

  std::span<const std::byte> rest = std::as_bytes(std::span(data, size));
  while (rest.size() > kLengthBytes && !peer.fabric->failed(1)) {
    const std::size_t words =
        std::to_integer<std::size_t>(rest[0]) | std::to_integer<std::size_t>(rest[1]) << 8;
    rest = rest.subspan(kLengthBytes);
    const std::size_t bytes = std::min(words * dunlin::kWordBytes, rest.size());
    peer.say(Bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(bytes)));
    rest = rest.subspan(bytes);
  }
  for (const std::byte byte : guard.memory())
    if (byte != std::byte{0}) __builtin_trap();
  return 0;
}
