#include "fabric/launch/host_list.hpp"

#include <algorithm>
#include <charconv>

#include <dunlin/error.hpp>

namespace dunlin::launch {
namespace {

constexpr std::uint64_t kMaxHosts = 1'000'000;

bool digit(char c) { return c >= '0' && c <= '9'; }

bool possible_in_a_name(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

/// Parses this grammar:
/// names = name { "," name };  name = { text | "[" range { "," range } "]" };  range = n [ "-" n ]
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  HostList run() {
    HostList all{{}, 0};
    do {
      HostList some = name();
      if (all.hosts == 0) all.first = std::move(some.first);
      all.hosts = bounded(all.hosts + some.hosts);
    } while (accept(','));
    if (at_ != text_.size()) fail("an unexpected character");
    return all;
  }

 private:
  HostList name() {
    HostList list{{}, 1};
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (accept('[')) {
        list.hosts = bounded(list.hosts * ranges(list.first));
      } else if (possible_in_a_name(text_[at_])) {
        list.first += text_[at_++];
      } else {
        fail("an unexpected character");
      }
    }
    if (at_ == start) fail("no name");
    return list;
  }

  /// Parses up to the bracket; the first number goes behind `name`, with its zeros.
  std::uint64_t ranges(std::string& name) {
    std::uint64_t count = 0;
    do {
      const std::string_view low = number();
      if (count == 0) name += low;
      const std::string_view high = accept('-') ? number() : low;
      if (value(high) < value(low)) fail("a range that runs backwards");
      count = bounded(count + value(high) - value(low) + 1);
    } while (accept(','));
    if (!accept(']')) fail("no ']'");
    return count;
  }

  std::string_view number() {
    const std::size_t start = at_;
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
    if (at_ == start) fail("no number");
    return text_.substr(start, at_ - start);
  }
  std::uint64_t value(std::string_view digits) const {
    std::uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec != std::errc() || value > kMaxHosts) fail("a number beyond what a cluster has");
    return value;
  }
  [[nodiscard]] std::uint64_t bounded(std::uint64_t hosts) const {
    if (hosts > kMaxHosts) fail("more hosts than a cluster has");
    return hosts;
  }
  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const char* what) const {
    throw Error(std::string(what) + " at its character " + std::to_string(at_ + 1));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

HostList parse_host_list(std::string_view text) { return Parser(text).run(); }

}  // namespace dunlin::launch
