#include "remote/control_channel.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "remote/two_members.hpp"

namespace dunlin::remote {
namespace {

using ControlChannels = TwoMembers;

TEST_F(ControlChannels, GoOnBehindAMessageWhoseHandlerThrows) {
  std::vector<std::uint64_t> handled;
  ControlChannel channel(*progress[0], 3, [&](Rank, std::span<const std::byte> message) {
    std::uint64_t number = 0;
    if (!parse(message, number)) return;
    if (number == 1) throw std::runtime_error("no use");
    handled.push_back(number);
  });
  for (std::uint64_t number = 0; number < 4; ++number) channel.send(0, number);
  EXPECT_THROW(channel.poll(), std::runtime_error);
  EXPECT_EQ(handled, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(channel.poll(), 2U);
  EXPECT_EQ(handled, (std::vector<std::uint64_t>{0, 2, 3}));
  EXPECT_EQ(channel.poll(), 0U);
}

}  // namespace
}  // namespace dunlin::remote
