#include "sim/node.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include "sim/messages.hpp"

namespace dunlin::app::sim {
Node::Node(Fabric& fabric, const std::vector<SubgroupSpec>& specs,
           const std::vector<MulticastOptions>& options, const Habits& habits, std::uint64_t seed,
           Trace trace)
    : fabric_(fabric),
      group_(fabric, {.subgroups = specs}),
      logs_(specs.size()),
      habits_(habits),
      random_(seed * 1'000 + fabric.rank()),
      trace_(std::move(trace)) {
  const std::string& name = fabric.member_name(fabric.rank());
  const auto named = [&](const std::vector<std::string>& names) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    logs_[i].member = named(specs[i].members);
    logs_[i].sender = logs_[i].member && named(specs[i].senders);
    multicasts_.push_back(std::make_unique<Multicast>(group_, specs[i].name, options[i]));
    if (habits_.polls) continue;
    multicasts_[i]->on_delivery([this, i](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch) take(i, delivery);
    });
  }
  group_.on_view([this](const View& view) {
    views_.push_back(view);
    std::ostringstream text;
    text << view;
    say(text.str());
  });
}

void Node::say(const std::string& what) const {
  if (trace_) trace_(fabric_.now_ns(), fabric_.member_name(fabric_.rank()) + ": " + what);
}

std::size_t Node::poll() {
  std::size_t done = group_.poll();
  for (std::size_t i = 0; habits_.polls && i < multicasts_.size(); ++i) {
    while (const auto delivery = multicasts_[i]->next()) {
      take(i, *delivery);
      ++done;
    }
  }
  ++polls_;
  look();
  const bool sends = !quiet_ && !views_.empty() && group_.why_ended().empty();
  return done + (sends ? send_some() : 0);
}

/// At all rows that it has.
void Node::look() {
  if (views_.empty()) return;
  const auto look = [this](const TableCore& table) { watch_.look(table, views_.back()); };
  group_.each_table(look);
  for (const auto& multicast : multicasts_) multicast->each_table(look);
}

/// Between bursts the node sleeps, if nothing arrives. Returns how many messages the next poll()
/// has to send.
std::size_t Node::send_some() {
  std::size_t sent = 0;
  const std::uint64_t now = fabric_.now_ns();
  if (now >= next_burst_ns_) {
    const std::size_t subgroup = random_() % multicasts_.size();
    while (sent < habits_.burst && send_one(subgroup)) ++sent;
    next_burst_ns_ = now + 1 + random_() % habits_.gap_ns;
  }
  fabric_.wake_at(next_burst_ns_);
  return sent;
}

bool Node::send_one(std::size_t subgroup) {
  SubgroupLog& log = logs_[subgroup];
  if (!log.sender) return false;
  const std::vector<std::byte> message =
      make_message({fabric_.rank(), log.accepted}, random_() % habits_.most_bytes);
  Multicast& multicast = *multicasts_[subgroup];
  if (habits_.in_place && message.size() <= multicast.largest_in_place()) {
    const std::span<std::byte> room = multicast.prepare(message.size());
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), message.data(), message.size());
    multicast.commit();
  } else if (!multicast.send(message)) {
    return false;
  }
  ++log.accepted;
  return true;
}

std::size_t Node::send_one_each() {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < multicasts_.size(); ++i) sent += send_one(i) ? 1 : 0;
  return sent;
}

void Node::take(std::size_t subgroup, const multicast::Delivery& delivery) {
  const MessageId id = id_of(delivery.message);
  if (!std::ranges::equal(delivery.message, make_message(id, delivery.message.size())) &&
      corruption_.empty())
    corruption_ = fmt::format("{} was given {} bytes that nobody sent",
                              fabric_.member_name(fabric_.rank()), delivery.message.size());
  logs_[subgroup].delivered.push_back({multicasts_[subgroup]->subgroup().view, id});
  if (trace_)
    say(fmt::format("delivers message {} of node {} in '{}', {} bytes, turn {} of member {}",
                    id.index, id.node, multicasts_[subgroup]->subgroup().name,
                    delivery.message.size(), delivery.turn, delivery.sender));
}

NodeLog Node::log() const {
  return {.name = fabric_.member_name(fabric_.rank()),
          .views = views_,
          .subgroups = logs_,
          .dead = false,
          .left = false,
          .ended = !group_.why_ended().empty()};
}

}  // namespace dunlin::app::sim
