#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

namespace dunlin::test {

/// What the Error says that the action throws, or "nothing".
inline std::string what_is_thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no '" << part << "' in '" << text << "'";
}

}  // namespace dunlin::test
