#pragma once

#if __cplusplus < 202002L
#error \
    "Dunlin is written in C++20: compile with -std=c++20, or link dunlin::dunlin, which asks for it"
#endif

#include <stdexcept>
#include <string>

namespace dunlin {

/// Set-up throws this: a sentence that says what failed, where, and what to do about it. The data
/// path (post, send, poll, push) never throws; a call that can fail there returns a value.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dunlin
