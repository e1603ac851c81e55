#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dunlin/node.hpp>

#include "support/fresh_group.hpp"

/// Nodes of one process, which found a group together.
namespace dunlin::test {

inline NodeOptions node_options(const std::string& group, std::uint32_t members) {
  NodeOptions options;
  options.group = group;
  options.members = members;
  options.network.timeout_ms = 60'000;
  options.network.silence_timeout_ms = 0;
  options.on_news = [](std::string_view) {};
  return options;
}

inline std::vector<Node> found(
    const std::string& group, std::uint32_t members,
    const std::function<void(NodeOptions&)>& change = [](NodeOptions&) {}) {
  std::vector<std::optional<Node>> made(members);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < members; ++i)
      threads.emplace_back([&, i] {
        NodeOptions options = node_options(group, members);
        change(options);
        made[i].emplace(Node::join(options));
      });
  }
  std::vector<Node> nodes;
  for (auto& node : made) nodes.push_back(std::move(*node));
  return nodes;
}

}  // namespace dunlin::test
