#include "top/process.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include <pwd.h>

namespace dunlin::top {
namespace {

/// Fields behind the command's closing parenthesis, numbered as in proc(5).
constexpr std::size_t kStateField = 3;
constexpr std::size_t kUserTimeField = 14;
constexpr std::size_t kSystemTimeField = 15;
constexpr std::size_t kStartTimeField = 22;

std::uint64_t to_number(const std::string& field) {
  std::uint64_t number = 0;
  std::from_chars(field.data(), field.data() + field.size(), number);
  return number;
}

}  // namespace

std::optional<ProcessSample> parse_process(std::string_view stat) {
  // The command is in parentheses, and may itself hold parentheses and blanks.
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  std::istringstream rest{std::string(stat.substr(close + 1))};
  std::vector<std::string> fields(kStateField);
  for (std::string field; fields.size() <= kStartTimeField && rest >> field;) {
    fields.push_back(field);
  }
  if (fields.size() <= kStartTimeField) return {};
  return ProcessSample{
      .command = std::string(stat.substr(open + 1, close - open - 1)),
      .state = fields[kStateField].front(),
      .cpu_ticks = to_number(fields[kUserTimeField]) + to_number(fields[kSystemTimeField]),
      .born_ticks = to_number(fields[kStartTimeField])};
}

std::optional<ProcessSample> read_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_process(text.str());
}

std::string_view describe_state(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
    case 'I':
      return "asleep";
    case 'D':
      return "in the kernel";
    case 'T':
      return "stopped";
    case 't':
      return "traced";
    case 'Z':
    case 'X':
      return "dead";
    default:
      return "unknown";
  }
}

std::string user_name(uid_t user) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> space(1 << 14);
  getpwuid_r(user, &entry, space.data(), space.size(), &found);
  return found == nullptr ? "user " + std::to_string(user) : found->pw_name;
}

}  // namespace dunlin::top
