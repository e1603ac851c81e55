#include <utility>

#include <dunlin/node.hpp>

#include "node/state.hpp"

namespace dunlin {

Node Node::join(const NodeOptions& options) { return Node(node::Engine::start(options)); }

Node::Node(std::shared_ptr<node::Engine> engine) : engine_(std::move(engine)) {
  engine_->with_lock([&] {
    const View& view = engine_->group().view();
    name_ = view.members[view.me];
    rank_ = engine_->fabric().rank();
  });
}

Node::~Node() {
  if (engine_) engine_->finish();
}

Node& Node::operator=(Node&& other) noexcept {
  if (this == &other) return *this;
  if (engine_) engine_->finish();
  engine_ = std::move(other.engine_);
  name_ = std::move(other.name_);
  rank_ = other.rank_;
  return *this;
}

View Node::view() const { return engine_->view(); }

void Node::on_view(std::function<void(const View&)> handler) {
  engine_->with_lock([&] { engine_->set_view_handler(std::move(handler)); });
}

void Node::leave() noexcept { engine_->ask_to_leave(); }
bool Node::wait_for_end(std::uint64_t timeout_ns) { return engine_->wait_for_end(timeout_ns); }
bool Node::ended() const noexcept { return !engine_->is_running(); }
std::string Node::why_ended() const {
  return ended() ? engine_->why_stopped().text : std::string();
}

}  // namespace dunlin
