#include "sim/node.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include "sim/messages.hpp"

namespace dunlin::app::sim {
Node::Node(const Place& place, const std::vector<SubgroupSpec>& specs,
           const std::vector<MulticastOptions>& options, const Habits& habits, std::uint64_t seed,
           Trace trace)
    : place_(place),
      name_(fmt::format("node{}", place.node)),
      specs_(specs),
      options_(options),
      logs_(specs.size()),
      habits_(habits),
      random_(seed * 1'000 + place.node),
      trace_(std::move(trace)) {
  const auto named = [&](const std::vector<std::string>& names) {
    return names.empty() || std::find(names.begin(), names.end(), name_) != names.end();
  };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    logs_[i].member = named(specs[i].members);
    logs_[i].sender = logs_[i].member && named(specs[i].senders);
  }
}

GroupOptions Node::group_options() const {
  return {.subgroups = place_.changing ? std::vector<SubgroupSpec>() : specs_,
          .rendezvous = place_.joinable ? place_.world.rendezvous(place_.node, "sim") : nullptr};
}

void Node::found() {
  founder_ = true;
  settle(std::make_unique<Group>(place_.world.fabric(place_.node), group_options()));
}

void Node::come() {
  constexpr std::uint32_t kPatienceMs = 60'000;
  for (SubgroupLog& log : logs_) log.from_view = SubgroupLog::kNothingYet;
  entry_ = std::make_unique<GroupEntry>(name_, group_options(), kPatienceMs);
}

void Node::settle(std::unique_ptr<Group> group) {
  group_ = std::move(group);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    multicasts_.push_back(make_multicast(i));
    if (!multicasts_[i]) continue;
    if (place_.joinable || place_.changing)
      multicasts_[i]->on_state([this, i] { return save(i); },
                               [this, i](std::span<const std::byte> state) { load(i, state); });
    if (habits_.polls) continue;
    multicasts_[i]->on_delivery([this, i](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch) take(i, delivery);
    });
  }
  group_->on_view([this](const View& view) {
    views_.push_back(view);
    std::ostringstream text;
    text << view;
    say(text.str());
  });
}

/// Null: this node is in no such subgroup, which comes at run time.
std::unique_ptr<Multicast> Node::make_multicast(std::size_t subgroup) {
  const std::string& name = specs_[subgroup].name;
  if (!place_.changing) return std::make_unique<Multicast>(*group_, name, options_[subgroup]);
  SubgroupLog& log = logs_[subgroup];
  if (!log.member) return nullptr;
  log.in_view = 0;
  log.from_view = SubgroupLog::kNothingYet;
  auto multicast = Multicast::join(*group_, name, options_[subgroup], {.sends = log.sender});
  multicast->on_members([&log](const Subgroup& now) {
    log.in_view = now.view;
    if (!now.lacks_state && log.from_view == SubgroupLog::kNothingYet) log.from_view = now.view;
  });
  return multicast;
}

std::size_t Node::enter() {
  std::unique_ptr<Group> group = entry_->poll();
  if (!group) return 0;
  entry_.reset();
  settle(std::move(group));
  return 1;
}

/// Saves all that was delivered, and from which view on that is complete.
std::vector<std::byte> Node::save(std::size_t subgroup) const {
  const SubgroupLog& log = logs_[subgroup];
  std::vector<std::uint64_t> words{log.from_view};
  for (const SubgroupLog::Entry& entry : log.delivered)
    words.insert(words.end(), {entry.view, entry.message.node, entry.message.index});
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

void Node::load(std::size_t subgroup, std::span<const std::byte> state) {
  SubgroupLog& log = logs_[subgroup];
  if ((!log.delivered.empty() || log.from_view != SubgroupLog::kNothingYet) && corruption_.empty())
    corruption_ = name_ + " was given a state, and had one";
  std::vector<std::uint64_t> words(state.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), state.data(), words.size() * sizeof(std::uint64_t));
  log.from_view = words.at(0);
  for (std::size_t i = 1; i + 2 < words.size(); i += 3)
    log.delivered.push_back({words[i], {static_cast<std::uint32_t>(words[i + 1]), words[i + 2]}});
  log.loaded = log.delivered.size();
  if (trace_)
    say(fmt::format("has the state of '{}': {} messages", specs_[subgroup].name,
                    log.delivered.size()));
}

void Node::say(const std::string& what) const {
  if (trace_) trace_(place_.world.now_ns(), name_ + ": " + what);
}

std::size_t Node::poll() {
  ++polls_;
  if (entry_) return enter();
  if (!group_) return 0;
  std::size_t done = poll_group();
  for (std::size_t i = 0; habits_.polls && i < multicasts_.size(); ++i) {
    while (const auto delivery =
               multicasts_[i] ? multicasts_[i]->next() : std::optional<multicast::Delivery>()) {
      take(i, *delivery);
      ++done;
    }
  }
  look();
  const bool sends = !quiet_ && !views_.empty() && group_->why_ended().empty();
  return done + (sends ? send_some() : 0);
}

/// A node without its log leaves, and says so; it is polled until it has left.
std::size_t Node::poll_group() {
  try {
    return group_->poll();
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool log_failed = what.starts_with("this member leaves the group: log '");
    for (const SubgroupSpec& spec : specs_)
      if (what.starts_with("this member leaves the group: subgroup '" + spec.name + "'"))
        lacks_log_ = spec.name;
    if (!log_failed && lacks_log_.empty()) throw;
    if (!log_failure_.empty()) return 0;
    log_failure_ = what;
    say(what);
    return 1;
  }
}

/// Looks at all rows that this node has.
void Node::look() {
  if (views_.empty()) return;
  const auto look = [this](const TableCore& table) { watch_.look(table, views_.back()); };
  group_->each_table(look);
  if (place_.changing) return;  // changing subgroups have generations, and no views
  for (const auto& multicast : multicasts_) multicast->each_table(look);
}

/// Between bursts the node sleeps, if nothing arrives. Returns how many messages the next poll()
/// has to send.
std::size_t Node::send_some() {
  std::size_t sent = 0;
  Fabric& fabric = group_->fabric();
  const std::uint64_t now = fabric.now_ns();
  if (now >= next_burst_ns_) {
    const std::size_t subgroup = random_() % multicasts_.size();
    while (sent < habits_.burst && send_one(subgroup)) ++sent;
    next_burst_ns_ = now + 1 + random_() % habits_.gap_ns;
  }
  fabric.wake_at(next_burst_ns_);
  return sent;
}

bool Node::send_one(std::size_t subgroup) {
  SubgroupLog& log = logs_[subgroup];
  if (!log.sender) return false;
  const std::vector<std::byte> message =
      make_message({place_.node, log.accepted}, random_() % habits_.most_bytes);
  Multicast& multicast = *multicasts_[subgroup];
  if (habits_.in_place && message.size() <= multicast.largest_in_place()) {
    const std::span<std::byte> room = multicast.prepare(message.size());
    if (room.data() == nullptr) return false;
    std::memcpy(room.data(), message.data(), message.size());
    multicast.commit();
  } else if (multicast.send(message) != multicast::SendResult::sent) {
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
    corruption_ =
        fmt::format("{} was given {} bytes that nobody sent", name_, delivery.message.size());
  SubgroupLog& log = logs_[subgroup];
  const std::uint64_t view = multicasts_[subgroup]->subgroup().view;
  // The first of a subgroup in which there was nobody to ask.
  if (log.from_view == SubgroupLog::kNothingYet) log.from_view = views_.front().number;
  log.delivered.push_back({view, id});
  if (trace_)
    say(fmt::format("delivers message {} of node {} in '{}', {} bytes, slot {} of member {}",
                    id.index, id.node, multicasts_[subgroup]->subgroup().name,
                    delivery.message.size(), delivery.slot, delivery.sender));
}

NodeLog Node::log() const {
  std::vector<SubgroupLog> subgroups = logs_;
  for (std::size_t i = 0; i < multicasts_.size(); ++i)
    if (multicasts_[i] && multicasts_[i]->left()) subgroups[i].member = subgroups[i].sender = false;
  return {.name = name_,
          .views = views_,
          .subgroups = std::move(subgroups),
          .dead = false,
          .left = !log_failure_.empty(),
          .ended = group_ && !group_->why_ended().empty(),
          .founder = founder_,
          .waits = entry_ != nullptr,
          .lost_state = group_ && group_->why_ended().find("had the state") != std::string::npos,
          .lacks_log = lacks_log_};
}

}  // namespace dunlin::app::sim
