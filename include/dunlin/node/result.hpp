#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <dunlin/error.hpp>
#include <dunlin/remote/status.hpp>

/// How a call on a Node ends: with a value, or with a Failure.
namespace dunlin {

struct Failure {
  remote::Status status = remote::Status::ok;
  std::string text = {};  // a sentence that names the call and the reason
};

/// Either a value or the failure of a call, in the shape of std::expected (C++23).
///
///     const dunlin::Result<std::uint64_t> version = store.put("k", "v").result();
///     if (!version) log(version.error().text);
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  Result() requires std::is_void_v<T> : outcome_(std::in_place_index<0>) {}
  // NOLINTBEGIN(google-explicit-constructor): as of std::expected
  Result(value_type value) : outcome_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : outcome_(std::in_place_index<1>, std::move(failure)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return outcome_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] remote::Status status() const noexcept {
    return has_value() ? remote::Status::ok : error().status;
  }
  /// Requires !has_value().
  [[nodiscard]] const Failure& error() const noexcept { return *std::get_if<1>(&outcome_); }

  /// Throws Error with the failure's sentence if there is no value.
  value_type& value() & { return checked(), *std::get_if<0>(&outcome_); }
  const value_type& value() const& { return checked(), *std::get_if<0>(&outcome_); }
  value_type value() && { return checked(), std::move(*std::get_if<0>(&outcome_)); }
  value_type& operator*() & { return value(); }
  const value_type& operator*() const& { return value(); }
  value_type operator*() && { return std::move(*this).value(); }
  value_type* operator->() { return &value(); }
  const value_type* operator->() const { return &value(); }
  template <class U>
  [[nodiscard]] value_type value_or(U&& other) const {
    return has_value() ? value() : static_cast<value_type>(std::forward<U>(other));
  }

 private:
  void checked() const {
    if (!has_value()) throw Error(error().text);
  }
  std::variant<value_type, Failure> outcome_;
};

}  // namespace dunlin
