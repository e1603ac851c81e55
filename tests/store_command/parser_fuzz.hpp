#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/request_parser.hpp"

namespace dunlin::test {

struct ParsedAll {
  std::vector<std::vector<std::string>> requests;
  std::string mistake;    // empty: none
  std::size_t bytes = 0;  // of the requests
};

/// Parses bytes that arrive up to one cut after the other. Each time they lie in memory of their
/// own, so that the address sanitizer sees a look beyond their end.
inline ParsedAll parse_all(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  ParsedAll all;
  app::resp::RequestParser parser;
  for (const std::size_t cut : cuts) {
    const std::size_t end = std::min(cut, bytes.size());
    for (;;) {
      const std::size_t there = end - all.bytes;
      const auto copy = std::make_unique<char[]>(there);
      if (there > 0) std::memcpy(copy.get(), bytes.data() + all.bytes, there);
      const auto parsed = parser.parse({copy.get(), there});
      if (parsed == app::resp::RequestParser::Parsed::part) break;
      if (parsed == app::resp::RequestParser::Parsed::mistake) {
        all.mistake = parser.mistake();
        return all;
      }
      if (parsed == app::resp::RequestParser::Parsed::skipped) {
        all.bytes += parser.bytes();
        continue;
      }
      if (parsed == app::resp::RequestParser::Parsed::refused) {
        all.requests.push_back({parser.mistake()});
        all.bytes += parser.bytes();
        parser.next();
        continue;
      }
      auto& request = all.requests.emplace_back();
      for (const std::string_view word : parser.arguments()) request.emplace_back(word);
      all.bytes += parser.bytes();
      parser.next();
    }
  }
  return all;
}

}  // namespace dunlin::test
