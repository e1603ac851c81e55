#pragma once

#include <exception>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include <dunlin/node/result.hpp>

namespace dunlin::python {

namespace nb = nanobind;

/// A call that has failed. Python gets the class of dunlin.errors that belongs to its status.
class CallFailed : public std::exception {
 public:
  explicit CallFailed(Failure failure) : failure_(std::move(failure)) {}
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
  [[nodiscard]] const char* what() const noexcept override { return failure_.text.c_str(); }

 private:
  Failure failure_;
};

/// The exception object of dunlin.errors for a failure. Requires the GIL.
[[nodiscard]] nb::object exception_of(const Failure& failure);
/// Lets nanobind turn CallFailed and dunlin::Error into exceptions of dunlin.errors.
void bind_errors();

}  // namespace dunlin::python
