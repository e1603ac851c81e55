#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <termios.h>

#include "fabric/shm/system.hpp"
#include "top/text_table.hpp"

/// The terminal as a screen of our own: the alternate one, so that what was there comes back.
namespace dunlin::top {

struct ScreenSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

enum class Key { none, quit, up, down, left, right, page_up, page_down, home, end, next };

/// Whether both standard input and output are a terminal.
[[nodiscard]] bool on_terminal();
[[nodiscard]] ScreenSize screen_size();
/// Turns what a terminal sends into a key; takes it off the input.
[[nodiscard]] Key take_key(std::string_view& input);

/// The bytes that show these lines, the last one at the bottom in inverse.
[[nodiscard]] std::string frame(std::span<const Line> lines, std::string_view status,
                                ScreenSize size);

/// Enters the screen, and leaves it at destruction. Signals that would end or stop the process, or
/// that tell of a new size, are taken from wait() meanwhile, so that the terminal is always left
/// in order.
class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  void show(std::span<const Line> lines, std::string_view status, ScreenSize size);
  /// The keys that the user typed until `deadline_ns` (CLOCK_MONOTONIC); empty then, or when the
  /// size changed. "q" when we are asked to end.
  [[nodiscard]] std::string wait(std::uint64_t deadline_ns);

 private:
  void enter();
  void leave();
  std::string take_signal();

  termios saved_{};
  sigset_t saved_signals_{};
  shm::Descriptor signals_;
};

}  // namespace dunlin::top
