#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <dunlin/remote/agreed_order.hpp>

/// The state of an order that tests look at: all that the order has said, in its order.
namespace dunlin::test {

/// A proposal of tests: the how-many-th of which member.
struct Proposed {
  std::uint32_t by;
  std::uint32_t number;
  friend bool operator==(const Proposed&, const Proposed&) = default;
};

class AgreedHistory final : public remote::AgreedState {
 public:
  void members_are(std::span<const Rank> ranks) noexcept override {
    members.assign(ranks.begin(), ranks.end());
    std::string line = "members";
    for (const Rank rank : ranks) line += " " + std::to_string(rank);
    lines.push_back(std::move(line));
  }
  void decided(std::span<const std::byte> proposal) noexcept override {
    Proposed one{};
    if (proposal.size() != sizeof one) return lines.emplace_back("not a proposal"), void();
    std::memcpy(&one, proposal.data(), sizeof one);
    lines.push_back(std::to_string(one.by) + ": " + std::to_string(one.number));
  }
  [[nodiscard]] std::vector<std::byte> save() const override {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] bool load(std::span<const std::byte> state) noexcept override {
    if (!lines.empty() || loaded) return false;
    loaded = true;
    std::istringstream in(std::string(reinterpret_cast<const char*>(state.data()), state.size()));
    for (std::string line; std::getline(in, line);) {
      lines.push_back(line);
      std::istringstream words(line);
      std::string first;
      if (!(words >> first) || first != "members") continue;
      members.assign(std::istream_iterator<Rank>(words), {});
    }
    return true;
  }

  std::vector<Rank> members;
  std::vector<std::string> lines;
  bool loaded = false;
};

/// Whether the order took it.
inline bool propose(remote::AgreedOrder& order, Proposed one) {
  return order.propose(std::as_bytes(std::span(&one, 1)));
}

}  // namespace dunlin::test
