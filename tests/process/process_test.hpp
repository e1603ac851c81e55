#pragma once

#include <cerrno>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace dunlin::test {

inline void expect_no_child_left() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace dunlin::test
