#include "top/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dunlin::top {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";  // other screen, no cursor
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

constexpr std::string_view style_code(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::title:
      return "\x1b[1m";
    case Style::heading:
      return "\x1b[4m";
    case Style::alarm:
      return "\x1b[31m";
    case Style::faint:
      return "\x1b[2m";
  }
  return "";
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;  // nobody looks any more; wait() will notice
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

struct Sequence {
  std::string_view text;
  Key key;
};
constexpr std::array<Sequence, 22> kSequences{{
    {"\x1b[A", Key::up},
    {"\x1bOA", Key::up},
    {"k", Key::up},
    {"\x1b[B", Key::down},
    {"\x1bOB", Key::down},
    {"j", Key::down},
    {"\x1b[D", Key::left},
    {"\x1bOD", Key::left},
    {"h", Key::left},
    {"\x1b[C", Key::right},
    {"\x1bOC", Key::right},
    {"l", Key::right},
    {"\x1b[5~", Key::page_up},
    {"\x1b[6~", Key::page_down},
    {" ", Key::page_down},
    {"\x1b[H", Key::home},
    {"g", Key::home},
    {"\x1b[F", Key::end},
    {"G", Key::end},
    {"\t", Key::next},
    {"q", Key::quit},
    {"Q", Key::quit},
}};

}  // namespace

bool on_terminal() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

ScreenSize screen_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

Key take_key(std::string_view& input) {
  for (const Sequence& s : kSequences) {
    if (!input.starts_with(s.text)) continue;
    input.remove_prefix(s.text.size());
    return s.key;
  }
  // An unknown escape sequence goes as a whole, lest its letters be taken for keys.
  input.remove_prefix(input.starts_with('\x1b') ? input.size()
                                                : std::min<std::size_t>(input.size(), 1));
  return Key::none;
}

std::string frame(std::span<const Line> lines, std::string_view status, ScreenSize size) {
  std::string out = "\x1b[H";
  const std::size_t body = size.rows - 1;
  for (std::size_t i = 0; i < body; ++i) {
    if (i < lines.size()) {
      const std::string_view text = std::string_view(lines[i].text).substr(0, size.columns);
      out += fmt::format("{}{}\x1b[0m", style_code(lines[i].style), text);
    }
    out += "\x1b[K\r\n";
  }
  const std::string_view shown = status.substr(0, size.columns);
  return out + fmt::format("\x1b[7m{:<{}}\x1b[0m\x1b[J", shown, size.columns);
}

Screen::Screen() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) sigaddset(&handled, signal);
  shm::checked(tcgetattr(STDIN_FILENO, &saved_), "asking the terminal for its settings");
  signals_ = shm::Descriptor(
      shm::checked(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK), "watching for signals"));
  pthread_sigmask(SIG_BLOCK, &handled, &saved_signals_);
  enter();
}

Screen::~Screen() {
  leave();
  pthread_sigmask(SIG_SETMASK, &saved_signals_, nullptr);
}

void Screen::enter() {
  termios raw = saved_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  write_all(kEnter);
}

void Screen::leave() {
  write_all(kLeave);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_);
}

void Screen::show(std::span<const Line> lines, std::string_view status, ScreenSize size) {
  write_all(frame(lines, status, size));
}

std::string Screen::wait(std::uint64_t deadline_ns) {
  const std::uint64_t now_ns = shm::read_clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t left_ns = deadline_ns - std::min(now_ns, deadline_ns);
  std::array<pollfd, 2> waits{{{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  const auto timeout_ms =
      static_cast<int>(std::min<std::uint64_t>(left_ns / 1'000'000 + 1, 60'000));
  if (poll(waits.data(), waits.size(), timeout_ms) <= 0) return {};
  if ((waits[1].revents & POLLIN) != 0) return take_signal();
  std::array<char, 64> typed;
  const ssize_t bytes = ::read(STDIN_FILENO, typed.data(), typed.size());
  // Readable without a byte: the terminal is gone.
  return bytes <= 0 ? "q" : std::string(typed.data(), static_cast<std::size_t>(bytes));
}

std::string Screen::take_signal() {
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return {};
  switch (signal.ssi_signo) {
    case SIGWINCH:
      return {};
    case SIGTSTP:
      leave();
      kill(getpid(), SIGSTOP);  // SIGTSTP itself is blocked; we go on here when continued
      enter();
      return {};
    default:
      return "q";
  }
}

}  // namespace dunlin::top
