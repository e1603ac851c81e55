#include "store/progress_bar.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace dunlin::app::resp {
namespace {

constexpr std::uint64_t kColumns = 30;
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

ProgressBar::ProgressBar(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total), on_terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::clear() noexcept {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

bool ProgressBar::is_due() const noexcept {
  return on_terminal_ && std::chrono::steady_clock::now() >= next_;
}

void ProgressBar::show(std::uint64_t done) {
  if (!is_due()) return;
  next_ = std::chrono::steady_clock::now() + kInterval;
  shown_ = true;
  std::fputs(("\r\033[K" + line(what_, done, total_)).c_str(), stderr);
}

std::string ProgressBar::line(const std::string& what, std::uint64_t done, std::uint64_t total) {
  if (total == 0) return fmt::format("{} {}", what, done);
  const std::uint64_t within = std::min(done, total);
  const std::uint64_t filled = kColumns * within / total;
  return fmt::format("{} [{}{}] {:3} %  {}", what, std::string(filled, '#'),
                     std::string(kColumns - filled, ' '), 100 * within / total, done);
}

}  // namespace dunlin::app::resp
