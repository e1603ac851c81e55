#include "top/output.hpp"

#include <ctime>

#include <poll.h>
#include <unistd.h>

#include "fabric/shm/system.hpp"
#include "standard_output.hpp"
#include "top/json.hpp"
#include "top/observe.hpp"
#include "top/terminal.hpp"
#include "top/text.hpp"
#include "top/viewer.hpp"

namespace dunlin::top {
namespace {

using std::chrono::nanoseconds;

/// The first rates of the screen come early.
constexpr nanoseconds kFirstInterval = std::chrono::milliseconds(200);

std::uint64_t now_ns() { return shm::read_clock_ns(CLOCK_MONOTONIC); }

/// Lets time pass; false if the reader of the output is gone.
bool pass(nanoseconds time) {
  pollfd output{STDOUT_FILENO, 0, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec timeout{seconds.count(), (time - seconds).count()};
  return ppoll(&output, 1, &timeout, nullptr) == 0;
}

void print(const Sample& sample, const OutputOptions& options, int indent) {
  std::string text;
  if (options.json) {
    text = to_json(sample).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
    text += '\n';
  } else {
    Page page{.raw = options.raw};
    if (isatty(STDOUT_FILENO) == 1) page.width = screen_size().columns;
    for (const Line& line : describe(sample, page)) text += line.text + '\n';
  }
  app::say(text);
}

}  // namespace

void print_once(const OutputOptions& options) {
  Sample sample = observe_checked(options.selection);
  if (options.interval > nanoseconds::zero()) {
    pass(options.interval);
    Sample later = observe(options.selection);
    compare(sample, later);
    sample = std::move(later);
  }
  print(sample, options, 2);
}

void print_stream(const OutputOptions& options) {
  Sample before = observe_checked(options.selection);
  while (pass(options.interval)) {
    Sample sample = observe(options.selection);
    if (sample.groups.empty()) return;
    compare(before, sample);
    print(sample, options, -1);
    if (!options.json) app::say("\n");
    before = std::move(sample);
  }
}

void show_live(const OutputOptions& options) {
  Viewer viewer(options.raw);
  viewer.update(observe_checked(options.selection));
  Screen screen;
  std::uint64_t deadline_ns =
      now_ns() + static_cast<std::uint64_t>(std::min(options.interval, kFirstInterval).count());
  for (;;) {
    const ScreenSize size = screen_size();
    screen.show(viewer.lines(size), viewer.status(size), size);
    const std::string typed = screen.wait(deadline_ns);
    for (std::string_view input = typed; !input.empty();) {
      if (!viewer.press(take_key(input), size)) return;
    }
    if (now_ns() < deadline_ns) continue;
    Sample sample = observe(options.selection);
    compare(viewer.sample(), sample);
    viewer.update(std::move(sample));
    deadline_ns = now_ns() + static_cast<std::uint64_t>(options.interval.count());
  }
}

}  // namespace dunlin::top
