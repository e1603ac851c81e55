#pragma once

#include <exception>
#include <span>
#include <utility>

#include <dunlin/multicast.hpp>

#include "scoped_flag.hpp"

namespace dunlin::multicast {

/// The user's upcall. Its exception comes out of the call; while a view ends, it is kept and thrown
/// afterwards, so that this member does not stop half-way.
class DeliveryUpcall {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return upcall_ != nullptr; }
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Requires that the upcall does not run.
  void set(Upcall upcall) { upcall_ = std::move(upcall); }

  void call(std::span<const Delivery> batch) {
    const ScopedFlag running(running_);
    if (!keeps_) [[likely]]
      return upcall_(batch);
    try {
      upcall_(batch);
    } catch (...) {
      if (!kept_) kept_ = std::current_exception();
    }
  }

  /// Keeps what the upcall throws while `end_view` runs.
  template <class EndView>
  auto keep_exceptions_during(const EndView& end_view) {
    const ScopedFlag keeps(keeps_);
    return end_view();
  }
  /// Calls another handler of the user's, and keeps what it throws.
  template <class Handler>
  void call_and_keep(const Handler& handler) {
    try {
      handler();
    } catch (...) {
      if (!kept_) kept_ = std::current_exception();
    }
  }
  /// Throws the first exception that was kept, if there is one.
  void throw_kept() {
    if (kept_) std::rethrow_exception(std::exchange(kept_, nullptr));
  }

 private:
  Upcall upcall_;
  bool running_ = false;
  bool keeps_ = false;
  std::exception_ptr kept_;
};

}  // namespace dunlin::multicast
