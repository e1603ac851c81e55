#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dunlin::app::resp {

/// How far a work has come, on standard error if that is a terminal, some times a second.
class ProgressBar {
 public:
  ProgressBar(std::string what, std::uint64_t total);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::uint64_t done);
  /// Whether show() would show something now, so that it is worth while to look how far it is.
  [[nodiscard]] bool is_due() const noexcept;
  /// Clears its line.
  void clear() noexcept;
  void set_total(std::uint64_t total) noexcept { total_ = total; }
  /// The line for `done` of `total`, which may be 0 if it is not known.
  [[nodiscard]] static std::string line(const std::string& what, std::uint64_t done,
                                        std::uint64_t total);

 private:
  std::string what_;
  std::uint64_t total_;
  bool on_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace dunlin::app::resp
