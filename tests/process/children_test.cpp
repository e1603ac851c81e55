#include "process/children.hpp"

#include <csignal>

#include <unistd.h>

#include "process/pipe.hpp"
#include "support/children.hpp"

namespace dunlin::process {
namespace {

using test::expect_no_child_left;

TEST(Children, TellWhichOfThemEndedAndHow) {
  Children children;
  for (int code = 0; code < 3; ++code) children.start([code] { return code; });
  EXPECT_EQ(children.running(), 3U);
  std::vector<int> codes(3, -1);
  while (children.running() > 0) {
    EXPECT_TRUE(children.await({}));
    for (const auto& [index, status] : children.ended()) codes.at(index) = status.exit_code();
  }
  EXPECT_EQ(codes, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(children.ended().empty());
  expect_no_child_left();
}

TEST(Children, AreAwaitedNoLongerThanAsked) {
  Children children;
  children.start([] { return pause(); });
  EXPECT_FALSE(children.await({-1}, std::chrono::milliseconds(1)));
  EXPECT_TRUE(children.ended().empty());
}

TEST(Children, AreAwaitedTogetherWithOtherDescriptors) {
  const Pipe pipe = make_pipe();
  Children children;
  children.start([&] {
    write_all(pipe.in, "here");
    return pause();
  });
  EXPECT_TRUE(children.await({pipe.out.get()}));
  EXPECT_TRUE(children.ended().empty());
}

TEST(Children, EndWithTheObject) {
  {
    Children children;
    for (int i = 0; i < 3; ++i) children.start([] { return pause(); });
  }
  expect_no_child_left();
}

}  // namespace
}  // namespace dunlin::process
