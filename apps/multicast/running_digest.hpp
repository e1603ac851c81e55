#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

/// A digest of all messages that a member has delivered: equal for members that delivered equal
/// messages of the same senders in the same order. Not for secrets.
namespace dunlin::app::cast {

struct RunningDigest {
  std::uint64_t messages = 0;
  std::uint64_t digest = 0;

  void add(std::string_view sender, std::span<const std::byte> message) noexcept {
    ++messages;
    mix(sender.size());
    mix_all(std::as_bytes(std::span(sender)));
    mix(message.size());
    mix_all(message);
  }

 private:
  void mix(std::uint64_t word) noexcept {
    digest = std::rotl(digest ^ (word * 0x9e3779b97f4a7c15), 27) * 0xbf58476d1ce4e5b9 + 1;
  }
  void mix_all(std::span<const std::byte> bytes) noexcept {
    std::uint64_t word = 0;
    for (; bytes.size() > sizeof word; bytes = bytes.subspan(sizeof word)) {
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    mix(word);
  }
};

}  // namespace dunlin::app::cast
