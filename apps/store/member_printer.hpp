#pragma once

#include <exception>
#include <string>

#include <fmt/format.h>

#include <dunlin/error.hpp>

#include "standard_output.hpp"

namespace dunlin::app::resp {

/// Prints lines that begin with the member's name.
class MemberPrinter {
 public:
  explicit MemberPrinter(std::string name) : name_(std::move(name)) {}
  void operator()(const std::string& text) const { say(fmt::format("{}: {}\n", name_, text)); }
  /// What must not keep the member from its work if it cannot be printed: see complain().
  void try_to(const std::string& text) noexcept {
    try {
      (*this)(text);
    } catch (const Error&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  /// Throws what try_to() has met.
  void complain() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::string name_;
  std::exception_ptr failure_;
};

}  // namespace dunlin::app::resp
