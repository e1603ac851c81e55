#pragma once

namespace dunlin::app {

/// Undoes what libraries did to the signals that end a process before main() was called: their
/// handlers may exit with status 1, as one does that libfabric needs. Ignored ones stay so.
void take_back_signals() noexcept;

/// While a SignalGuard lives, SIGINT, SIGTERM and SIGHUP do not end this process but are
/// remembered, unless they are ignored (nohup). When it is destroyed, a signal for which nobody has
/// asked ends the process after all.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The name of a signal that has come; null if none has.
  [[nodiscard]] const char* caught() noexcept;
  /// Readable when one has come.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
  bool answered_ = false;
};

}  // namespace dunlin::app
