#include "process/child.hpp"

#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/pipe.hpp"
#include "support/children.hpp"
#include "support/errors.hpp"

namespace dunlin::process {
namespace {

using test::expect_no_child_left;

TEST(Child, ReturnsTheResultOfItsFunctionAsExitCode) {
  Child child([] { return 3; });
  EXPECT_TRUE(child.running());
  EXPECT_EQ(child.wait().exit_code(), 3);
  EXPECT_FALSE(child.running());
  EXPECT_EQ(child.wait().text(), "exited with status 3") << "asked again";
  EXPECT_TRUE(Child([] { return 0; }).wait().well());
}

TEST(Child, TellsWhichSignalEndedIt) {
  Child child([] { return raise(SIGKILL); });
  const Status status = child.wait();
  EXPECT_FALSE(status.well());
  EXPECT_EQ(status.exit_code(), -SIGKILL);
  EXPECT_EQ(status.text(), "was ended by signal 9 (Killed)");
}

TEST(Child, WritesWhatItThrowsToStandardError) {
  Pipe pipe = make_pipe();
  Child child([&] {
    dup2(pipe.in.get(), 2);
    pipe.in.close();
    throw std::runtime_error("no more rabbits");
    return 0;
  });
  pipe.in.close();
  std::string text;
  EXPECT_TRUE(read_all(pipe.out, text));
  EXPECT_EQ(text, "in a child process: no more rabbits\n");
  EXPECT_EQ(child.wait().exit_code(), 1);
}

TEST(Child, HasADescriptorThatIsReadableWhenItHasEnded) {
  Child child([] { return pause(); });
  pollfd wait{child.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 0);
  EXPECT_FALSE(child.ended());
  child.signal(SIGKILL);
  EXPECT_EQ(poll(&wait, 1, -1), 1);
  ASSERT_TRUE(child.ended());
  EXPECT_EQ(child.ended()->exit_code(), -SIGKILL);
}

TEST(Child, StopsAndGoesOn) {
  Child child([] { return pause(); });
  child.signal(SIGSTOP);
  siginfo_t seen{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &seen, WSTOPPED), 0);
  EXPECT_FALSE(child.ended());
  child.signal(SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &seen, WCONTINUED), 0);
  child.kill();
  EXPECT_FALSE(child.running());
}

TEST(Child, EndsWithItsObjectEvenIfSomethingIsThrown) {
  try {
    const Child child([] { return pause(); });
    throw std::runtime_error("meanwhile");
  } catch (const std::runtime_error&) {
  }
  expect_no_child_left();
}

TEST(Child, MovesFromObjectToObject) {
  Child first([] { return pause(); });
  const pid_t pid = first.pid();
  Child second(std::move(first));
  EXPECT_EQ(second.pid(), pid);
  second = Child([] { return 0; });
  EXPECT_NE(second.pid(), pid);
  EXPECT_TRUE(second.wait().well());
  expect_no_child_left();
}

/// The pipe is closed when the last process that has it open has ended.
TEST(Child, EndsWhenItsParentIsKilled) {
  Pipe pipe = make_pipe();
  Child parent([&] {
    const Child child([&] {
      write_all(pipe.in, "child ");
      return pause();
    });
    return pause();
  });
  pipe.in.close();
  std::string text(6, '\0');
  ASSERT_EQ(::read(pipe.out.get(), text.data(), text.size()), 6);
  parent.kill();
  EXPECT_TRUE(read_all(pipe.out, text));
  EXPECT_EQ(text, "child ");
}

TEST(Child, IsNotEndedByACopyOfItsObjectInAnotherChild) {
  Child first([] { return pause(); });
  Child second([&] {
    const Child copy(std::move(first));
    return copy.running() ? 1 : 0;
  });
  EXPECT_TRUE(second.wait().well());
  EXPECT_FALSE(first.ended());
}

TEST(Child, LeavesTheTerminalToItsParent) {
  Child child([] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    leave_terminal_to_parent();
    raise(SIGINT);
    raise(SIGHUP);
    raise(SIGTERM);
    return 0;
  });
  EXPECT_EQ(child.wait().exit_code(), -SIGTERM);
}

TEST(Child, ThatCannotBeStartedIsAnErrorThatNamesTheLimit) {
  Child poor([] {
    if (setuid(65534) != 0) return 77;  // to root, that limit does not apply
    constexpr rlimit kNone{0, 0};
    setrlimit(RLIMIT_NPROC, &kNone);
    const std::string text = test::what_is_thrown_by([] { const Child none([] { return 0; }); });
    return test::contains(text, "raise the number of processes that this user may have") ? 0 : 1;
  });
  const int code = poor.wait().exit_code();
  if (code == 77) GTEST_SKIP() << "needs to be another user";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace dunlin::process
