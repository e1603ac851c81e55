#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/rendezvous.hpp>

#include "fabric/sim/ticks.hpp"

/// Listeners of simulated groups. A leader and a joiner find each other at once, as by a directory,
/// if their nodes can reach each other; then they form a fabric of two, which takes a round trip.
namespace dunlin::sim {

struct Simulation;

/// A node at a listener, on one of its sides.
struct Caller {
  Rank node;
  bool gone = false;
  std::string fabric = {};         // set when the other side is there: the fabric of both,
  std::vector<Rank> members = {};  // and its nodes
};

class Listeners {
 public:
  explicit Listeners(Simulation& world) : world_(world) {}
  [[nodiscard]] std::shared_ptr<Caller> open(const std::string& group, Rank node);
  [[nodiscard]] std::shared_ptr<Caller> connect(const std::string& group, Rank node);
  /// Brings together the nodes that can meet.
  void match(const std::string& group);

 private:
  struct Listener {
    std::deque<std::shared_ptr<Caller>> openers;
    std::deque<std::shared_ptr<Caller>> connectors;
    std::uint64_t opened = 0;
  };
  Simulation& world_;
  std::map<std::string, Listener> listeners_;
};

[[nodiscard]] std::shared_ptr<Rendezvous> make_rendezvous(Simulation& world, Rank node,
                                                          const std::string& group);

}  // namespace dunlin::sim
