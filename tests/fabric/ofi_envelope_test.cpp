#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/ofi/envelope.hpp"

namespace dunlin::ofi {
namespace {

constexpr std::size_t kFrame = 4096;

stream::Proof proof(unsigned seed) {
  stream::Proof made;
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = std::byte(seed * 31 + i * 7);
  return made;
}

/// On whole words, with room for the longest frame.
class Buffer {
 public:
  Buffer() : words_((stream::kMaxFrameBytes + kEnvelopeBytes) / kWordBytes) {}
  [[nodiscard]] std::byte* at() noexcept { return reinterpret_cast<std::byte*>(words_.data()); }
  [[nodiscard]] Arrival look(const Marks& marks) noexcept {
    return ofi::look(at(), marks.current(), frame);
  }
  std::span<const std::byte> frame;

 private:
  std::vector<std::uint64_t> words_;
};

void compose(Buffer& buffer, const Marks& marks, std::byte content) {
  std::memset(buffer.at() + kWordBytes, std::to_integer<int>(content), kFrame);
  seal(buffer.at(), kFrame, marks.current());
}

TEST(Envelope, HoldsItsFrameWhenTheLastByteIsThereAndNoSooner) {
  Buffer sent;
  Buffer received;
  Marks marks(proof(1));
  for (int frame = 1; frame <= 3; ++frame) {
    compose(sent, marks, std::byte(frame));
    for (std::size_t bytes = 0; bytes < kFrame + kEnvelopeBytes; ++bytes) {
      ASSERT_EQ(received.look(marks), Arrival::none) << bytes << " bytes of frame " << frame;
      received.at()[bytes] = sent.at()[bytes];
    }
    ASSERT_EQ(received.look(marks), Arrival::whole);
    EXPECT_EQ(received.frame.size(), kFrame);
    EXPECT_EQ(received.frame.back(), std::byte(frame));
    marks.advance();
    empty(received.at());
  }
}

TEST(Envelope, IsNotTakenForTheNextOne) {
  Buffer buffer;
  Marks marks(proof(1));
  compose(buffer, marks, std::byte{1});
  marks.advance();
  EXPECT_EQ(buffer.look(marks), Arrival::none);
}

TEST(Envelope, OfAnotherConnectionIsNoFrame) {
  Buffer buffer;
  compose(buffer, Marks(proof(1)), std::byte{1});
  EXPECT_EQ(buffer.look(Marks(proof(2))), Arrival::none);
}

TEST(Envelope, IsGarbageIfItIsLongerThanAnyFrameOrNotOfWholeWords) {
  const Marks marks(proof(1));
  for (const std::uint64_t length :
       {std::uint64_t{stream::kMaxFrameBytes + kWordBytes}, std::uint64_t{12}, UINT64_MAX}) {
    Buffer buffer;
    std::memcpy(buffer.at(), &length, sizeof length);
    EXPECT_EQ(buffer.look(marks), Arrival::garbage) << length;
  }
}

}  // namespace
}  // namespace dunlin::ofi
