#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <dunlin/node.hpp>

#include "bench/fabric/group.hpp"
#include "bench/harness/turns.hpp"

/// What the figures of Node share.
namespace dunlin::bench {

/// The engine of a node: what is behind dunlin::Node, for figures that need its lock.
[[nodiscard]] inline std::shared_ptr<node::Engine> start_engine(const std::string& group,
                                                                std::uint32_t members) {
  NodeOptions options;
  options.group = group;
  options.members = members;
  options.on_news = [](std::string_view) {};
  return node::Engine::start(options);
}

/// A team whose processes have several threads each: pinned to a core, these would share it.
[[nodiscard]] inline TeamOptions unpinned(const Group& group, std::uint32_t members) {
  TeamOptions options = group.team(members);
  options.pin = false;
  return options;
}

/// A turn of a node's in alternate(). Its own thread polls, so members that wait sleep meanwhile.
template <class Turn>
std::optional<double> node_turn(Member& me, Turn&& turn) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::microseconds(50)); };
  return take_turn(me, sleep, [&]() -> std::optional<double> {
    if (me.rank() != 0) return std::nullopt;
    return turn();
  });
}

}  // namespace dunlin::bench
