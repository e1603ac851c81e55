#include "store/command_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kMaxNameBytes = 32;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

const std::vector<const Command*>& sorted_commands() {
  static const std::vector<const Command*> sorted = [] {
    std::vector<const Command*> all;
    for (const auto& commands : {string_commands(), key_commands(), hash_commands(),
                                 sorted_set_commands(), connection_commands()})
      for (const Command& command : commands) all.push_back(&command);
    std::ranges::sort(all, {}, &Command::name);
    return all;
  }();
  return sorted;
}

/// Whether `c` is in the class that begins behind its bracket at `at`; `at` moves behind the class.
bool in_class(std::string_view pattern, std::size_t& at, char c) noexcept {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    char first = pattern[at++];
    char last = first;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      last = pattern[at + 1];
      at += 2;
    }
    if (first > last) std::swap(first, last);
    found = found || (first <= c && c <= last);
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

/// Whether what stands at `at`, which is no asterisk, stands for `c`; moves `at` behind it.
bool matches_one(std::string_view pattern, std::size_t& at, char c) noexcept {
  const char p = pattern[at++];
  if (p == '?') return true;
  if (p == '[') return in_class(pattern, at, c);
  if (p == '\\' && at < pattern.size()) return pattern[at++] == c;
  return p == c;
}

}  // namespace

std::span<const Command* const> all_commands() noexcept { return sorted_commands(); }

const Command* find_command(std::string_view name) noexcept {
  if (name.size() > kMaxNameBytes) return nullptr;
  std::array<char, kMaxNameBytes> letters;
  std::ranges::transform(name, letters.begin(), lower);
  const std::string_view wanted(letters.data(), name.size());
  const auto& all = sorted_commands();
  const auto found = std::ranges::lower_bound(all, wanted, {}, &Command::name);
  return found != all.end() && (*found)->name == wanted ? *found : nullptr;
}

bool is_word(std::string_view text, std::string_view wanted) noexcept {
  return std::ranges::equal(text, wanted, {}, lower);
}

bool parse_integer(std::string_view text, std::int64_t& number) noexcept {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return false;
  const std::string_view digits = text.front() == '-' ? text.substr(1) : text;
  return digits.front() != '0' || text.size() == 1;
}

/// Goes back to the last asterisk only, which is enough: so it takes at most pattern times text.
bool matches(std::string_view pattern, std::string_view text) noexcept {
  constexpr std::size_t kNone = SIZE_MAX;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t behind_star = kNone;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && matches_one(pattern, p, text[t])) {
      ++t;
      continue;
    }
    if (behind_star == kNone) return false;
    p = behind_star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const char* describe(Ending ending) noexcept {
  switch (ending) {
    case Ending::ok:
      break;
    case Ending::lost:
      return "CLUSTERDOWN the member that holds the key has failed";
    case Ending::no_room:
      return "OOM the member that holds the key has no room for it: raise its maxmemory, or give "
             "it more --memory";
    case Ending::too_large:
      return "ERR the key or the value is too long: 255 and 1048576 bytes are possible";
    case Ending::bad_cursor:
      return "ERR invalid cursor";
    case Ending::stopped:
      return "ERR this server is no member of its group any more: connect to another member";
  }
  return "OK";
}

}  // namespace dunlin::app::resp
