#include "store/element_scan.hpp"

#include <charconv>

#include "store/command_table.hpp"

namespace dunlin::app::resp {

bool parse_cursor(std::string_view text, std::uint64_t& cursor) noexcept {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  return !text.empty() && failure == std::errc{} && end == text.data() + text.size();
}

const char* parse_element_scan(const Job& job, ElementScan& scan) {
  const auto& words = job.arguments;
  std::uint64_t cursor = 0;
  if (!parse_cursor(words[2], cursor)) return "ERR invalid cursor";
  scan.is_first = cursor == 0;
  for (std::size_t i = 3; i < words.size(); ++i) {
    std::int64_t count = 0;
    if (is_word(words[i], "novalues")) {
      scan.names_only = true;
    } else if (is_word(words[i], "match") && i + 1 < words.size()) {
      scan.pattern = words[++i];
      if (scan.pattern.size() > kMaxElementPatternBytes)
        return "ERR the pattern is too long: 64 bytes are possible";
    } else if (is_word(words[i], "count") && i + 1 < words.size()) {
      if (!parse_integer(words[++i], count)) return kNotAnInteger;
      if (count < 1) return kSyntaxError;
    } else {
      return kSyntaxError;
    }
  }
  return nullptr;
}

static_assert(kMaxElementPatternBytes == 64, "as parse_element_scan says");

}  // namespace dunlin::app::resp
