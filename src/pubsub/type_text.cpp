#include <algorithm>
#include <string_view>

#include <dunlin/pubsub/qos.hpp>
#include <dunlin/pubsub/status.hpp>
#include <dunlin/pubsub/type_support.hpp>

namespace dunlin::pubsub {
namespace {

/// Takes the first line off `rest`, and returns it.
[[nodiscard]] std::string_view line_of(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

bool types_match(const std::string& one, const std::string& other) {
  if (one == other) return true;
  std::string_view rest = one;
  if (!line_of(rest).ends_with(" appendable")) return false;
  return one.starts_with(other) || other.starts_with(one);
}

std::string show_both_types(const std::string& one, const std::string& other) {
  std::string_view left = one;
  std::string_view right = other;
  std::string_view differs_left;
  std::string_view differs_right;
  while (differs_left == differs_right && !(left.empty() && right.empty())) {
    differs_left = line_of(left);
    differs_right = line_of(right);
  }
  const auto shown = [](std::string_view line) {
    return line.empty() ? std::string("nothing") : "'" + std::string(line) + "'";
  };
  return "the topic has " + shown(differs_left) + " where this member has " + shown(differs_right) +
         "\nthe topic's type:\n" + one + "this member's type:\n" + other;
}

std::string_view describe(Level level) noexcept {
  switch (level) {
    case Level::unordered:
      return "unordered";
    case Level::atomic:
      return "atomic";
    case Level::volatile_storage:
      return "volatile_storage";
    case Level::logged:
      return "logged";
  }
  return "unknown";
}

std::string_view describe(WriteResult result) noexcept {
  switch (result) {
    case WriteResult::written:
      return "written";
    case WriteResult::no_room:
      return "no_room";
    case WriteResult::not_ready:
      return "not_ready";
    case WriteResult::refused:
      return "refused";
    case WriteResult::ended:
      return "ended";
  }
  return "unknown";
}

}  // namespace dunlin::pubsub
