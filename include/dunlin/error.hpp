#pragma once

#include <stdexcept>
#include <string>

namespace dunlin {

/// What set-up throws: a sentence that says what failed, where, and what to do about it.
/// The data path (post, send, poll, push) never throws; what can fail there is returned.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dunlin
