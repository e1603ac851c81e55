#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/command_table.hpp"
#include "store_command/conversation.hpp"
#include "store_command/fake_values.hpp"
#include "store_command/parser_fuzz.hpp"

namespace dunlin::test {

/// What one client meets: its bytes, how they are cut, and what the store does.
struct SessionFuzz {
  std::string_view bytes;
  std::size_t piece_bytes = SIZE_MAX;
  std::string_view stored = {};  // behind the mark of a hash and a sorted set, in "h" and "z"
  Ending ending = Ending::ok;
  bool has_password = false;

  /// The replies. With a seed, calls end late, in an order drawn from it.
  [[nodiscard]] std::string replies(std::size_t piece, std::optional<std::uint64_t> seed) const {
    FakeValues values;
    values.next_ending = ending;
    values.entries["h"].value.append(app::resp::kHashMark).append(stored);
    values.entries["z"].value.append(app::resp::kSortedSetMark).append(stored);
    if (seed) values.delay(*seed);
    app::resp::Service service(values, {.password = has_password ? "secret" : ""});
    Conversation client(service);
    return client.ask(bytes, piece);
  }

  /// RSP-C1, RSP-C2 and RSP-P2: neither the cuts nor the order in which calls end can be seen.
  [[nodiscard]] bool replies_are_the_same() const {
    return replies(SIZE_MAX, std::nullopt) == replies(piece_bytes, piece_bytes);
  }

  /// RSP-P2, and RSP-P1 under the address sanitizer.
  [[nodiscard]] bool requests_are_the_same() const {
    std::vector<std::size_t> cuts;
    for (std::size_t cut = 0; cut < bytes.size(); cut += std::min(piece_bytes, bytes.size()))
      cuts.push_back(cut);
    cuts.push_back(bytes.size());
    const ParsedAll whole = parse_all(bytes, {bytes.size()});
    const ParsedAll cut = parse_all(bytes, cuts);
    return whole.requests == cut.requests && whole.mistake == cut.mistake &&
           whole.bytes == cut.bytes;
  }
};

}  // namespace dunlin::test
