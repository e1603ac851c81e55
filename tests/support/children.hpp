#pragma once

#include <cerrno>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace dunlin::test {

/// Expects that this process has no children, not even ended ones that nobody has waited for.
inline void expect_no_child_left() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace dunlin::test
