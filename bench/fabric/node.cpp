#include "bench/fabric/node.hpp"

#include <algorithm>

namespace dunlin::bench {

Node::Node(std::unique_ptr<Fabric> fabric)
    : fabric_(std::move(fabric)),
      box_(fabric_->allocate({.name = "bench", .bytes = kRoom + kRoomBytes})) {
  fabric_->announce(box_);
}

bool Node::connected() const noexcept {
  for (Rank peer = 0; peer < fabric_->size(); ++peer)
    if (!fabric_->connected(peer, box_.id())) return false;
  return true;
}

void Node::need_peers(Member& me) {
  watch_ = fabric_->subscribe([&me](const Event& event) {
    if (event.kind == Event::Kind::peer_failed) me.lost(event.peer, event.text);
  });
}

void Node::post(std::span<const Operation> batch) {
  while (!batch.empty()) {
    const Posted posted = fabric_->post(batch);
    batch = batch.subspan(posted.accepted);
    if (posted.all()) return;
    if (posted.refusal != Refusal::queue_full) {
      throw Error("bench: an operation was refused: " + std::string(describe(posted.refusal)));
    }
    poll();
  }
}

void Node::finish(Operation operation, Notify when) {
  post(operation.notify(completion_, when));
  while (!completion_.finished()) poll();
}

void Node::end_turn(Rank server) {
  ++turn_;
  finish(write(server, box(), kOver, &turn_, sizeof turn_));
}

void connect(Member& me, std::span<Node* const> nodes) {
  for (Node* const node : nodes) node->need_peers(me);
  const auto poll = [&] {
    for (Node* const node : nodes) node->poll();
  };
  while (!std::ranges::all_of(nodes, [](const Node* node) { return node->connected(); })) poll();
  me.meet(poll);
}

}  // namespace dunlin::bench
