#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/meeting_place.hpp>

#include "fabric/sim/ticks.hpp"

/// Doors of simulated groups. Who opens and who knocks find each other at once, as by a directory,
/// if their nodes can reach each other; then they form a fabric of two, which takes its time.
namespace dunlin::sim {

struct Simulation;

/// Somebody at a door, on one side or the other.
struct Caller {
  Rank node;
  bool gone = false;
  std::string fabric = {};         // once there is somebody on the other side: which they form,
  std::vector<Rank> members = {};  // of which nodes
};

class Doors {
 public:
  explicit Doors(Simulation& world) : world_(world) {}
  [[nodiscard]] std::shared_ptr<Caller> open(const std::string& group, Rank node);
  [[nodiscard]] std::shared_ptr<Caller> knock(const std::string& group, Rank node);
  /// Brings together who can meet.
  void match(const std::string& group);

 private:
  struct Door {
    std::deque<std::shared_ptr<Caller>> openers;
    std::deque<std::shared_ptr<Caller>> knockers;
    std::uint64_t opened = 0;
  };
  Simulation& world_;
  std::map<std::string, Door> doors_;
};

[[nodiscard]] std::shared_ptr<MeetingPlace> make_meeting_place(Simulation& world, Rank node,
                                                               const std::string& group);

}  // namespace dunlin::sim
