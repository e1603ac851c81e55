#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>

namespace dunlin::test {

inline constexpr std::array kPolicies{Wait::spin, Wait::adaptive, Wait::block};

inline std::string name_of(Wait policy) {
  return std::array{"spin", "adaptive", "block"}.at(static_cast<std::size_t>(policy));
}
inline std::string name_of_policy(const testing::TestParamInfo<Wait>& of) {
  return name_of(of.param);
}

}  // namespace dunlin::test
