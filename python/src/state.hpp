#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <dunlin/node.hpp>

#include "completions.hpp"
#include "registered.hpp"

namespace dunlin::python {

/// A node, which its handles share: it ends when it is closed, or with the last of them. Requires
/// the GIL, unless a function says that it gives the GIL away.
class NodeState {
 public:
  NodeState(Node node, std::string group) : node_(std::move(node)), group_(std::move(group)) {}
  NodeState(const NodeState&) = delete;
  NodeState& operator=(const NodeState&) = delete;
  ~NodeState();

  [[nodiscard]] Node& node() noexcept { return node_; }
  [[nodiscard]] const std::string& group() const noexcept { return group_; }
  [[nodiscard]] const std::shared_ptr<node::Engine>& engine() const noexcept {
    return node_.engine();
  }
  /// Leaves the group, and waits for the end without the GIL. A signal ends the wait.
  void close();
  /// Where calls of the running event loop report their ends. Throws RuntimeError without a loop.
  [[nodiscard]] const std::shared_ptr<Completions>& completions();
  /// The registered memory of this node; null: none was asked for.
  [[nodiscard]] std::shared_ptr<RegisteredMemories>& memories() noexcept { return memories_; }

 private:
  Node node_;
  const std::string group_;
  std::shared_ptr<RegisteredMemories> memories_;
  std::vector<std::shared_ptr<Completions>> loops_;  // the last one used is in front
};

}  // namespace dunlin::python
