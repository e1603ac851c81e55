#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "sim/audit.hpp"

/// The messages that simulated members send: their bytes tell the sender, and no two are alike.
namespace dunlin::app::sim {

struct MessageHead {
  std::uint64_t index;
  std::uint32_t node;
  std::uint32_t check;  // over the rest
};

[[nodiscard]] inline std::vector<std::byte> make_message(MessageId id, std::size_t bytes) {
  std::vector<std::byte> message(std::max(bytes, sizeof(MessageHead)));
  const MessageHead head{
      .index = id.index, .node = id.node, .check = static_cast<std::uint32_t>(message.size())};
  std::memcpy(message.data(), &head, sizeof head);
  for (std::size_t i = sizeof head; i < message.size(); ++i)
    message[i] = static_cast<std::byte>(id.index * 31 + id.node * 7 + i);
  return message;
}

[[nodiscard]] inline MessageId id_of(std::span<const std::byte> message) {
  MessageHead head{};
  if (message.size() >= sizeof head) std::memcpy(&head, message.data(), sizeof head);
  return {head.node, head.index};
}

/// The contents of a member's state: where it begins, and of each message its view and its id.
[[nodiscard]] inline std::vector<MessageId> messages_in(std::span<const std::byte> state) {
  std::vector<std::uint64_t> words(state.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), state.data(), words.size() * sizeof words[0]);
  std::vector<MessageId> messages;
  for (std::size_t i = 1; i + 2 < words.size(); i += 3)
    messages.push_back({static_cast<std::uint32_t>(words[i + 1]), words[i + 2]});
  return messages;
}

}  // namespace dunlin::app::sim
