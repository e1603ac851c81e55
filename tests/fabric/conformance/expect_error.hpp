#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

namespace dunlin::conformance {

/// The action throws an Error whose sentence has the given part.
template <class Action>
void expect_error(const Action& action, std::string_view part) {
  try {
    action();
    ADD_FAILURE() << "no Error; expected one that mentions '" << part << "'";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

}  // namespace dunlin::conformance
