#include "relay/peers.hpp"

#include <algorithm>
#include <optional>

#include <dunlin/error.hpp>

#include "fabric/bytes.hpp"
#include "pubsub/channel.hpp"
#include "pubsub/topic_qos.hpp"

namespace dunlin::relay {
namespace {

constexpr const char* kSubgroup = "relays.of.clients";
constexpr std::size_t kRingBytes = 65'536;
constexpr std::uint32_t kUses = 1;
constexpr std::uint32_t kCannot = 2;

struct Message {
  SharedTopic topic = {};
  TopicShare share = {};
};

std::vector<std::byte> make_message(const SharedTopic& topic, const TopicShare& share) {
  std::vector<std::byte> message;
  Writer writer(message);
  writer.u32((share.uses ? kUses : 0) | (share.cannot ? kCannot : 0));
  writer.text(topic.name);
  writer.text(topic.type_name);
  writer.text(describe(topic.qos));
  return message;
}

std::optional<Message> read_message(std::span<const std::byte> bytes) {
  Reader from(bytes);
  const std::uint32_t flags = from.u32();
  Message message{.share = {.uses = (flags & kUses) != 0, .cannot = (flags & kCannot) != 0}};
  message.topic.name = from.text();
  message.topic.type_name = from.text();
  const auto qos = pubsub::read_topic_qos(from.text());
  if (!from.good() || !from.rest().empty() || !qos) return std::nullopt;
  message.topic.qos = *qos;
  return message;
}

}  // namespace

std::string topic_key(const std::string& name, const pubsub::OrderName& order) {
  return name + " " + std::string(order.view());
}

RelayPeers::RelayPeers(Group& group)
    : group_(group),
      multicast_(Multicast::join(group, kSubgroup, {.ring_bytes = kRingBytes},
                                 {.label = "the relays of the group"})) {}

void RelayPeers::tell(const SharedTopic& topic, const TopicShare& share) {
  const std::string key = topic_key(topic.name, topic.qos.order);
  if (share == TopicShare{} && !mine_.contains(key)) return;
  Told& mine = mine_[key];
  if (mine.share == share) return;
  mine = {.topic = topic, .share = share};
  is_all_told_ = false;
}

std::size_t RelayPeers::poll() {
  if (!multicast_->why_left().empty())
    throw Error("this relay cannot be among the relays of its group: " + multicast_->why_left());
  std::size_t done = 0;
  meet_members();
  while (const auto delivery = multicast_->next()) {
    meet_members();
    const auto& members = multicast_->subgroup().members;
    if (delivery->sender < members.size()) receive(members[delivery->sender], delivery->message);
    ++done;
  }
  return done + send();
}

/// Forgets what relays have told that are gone; if new ones have come, tells them everything again.
void RelayPeers::meet_members() {
  const Subgroup& subgroup = multicast_->subgroup();
  if (subgroup.generation() == generation_) return;
  generation_ = subgroup.generation();
  std::map<Rank, std::string> now;
  for (const Rank rank : subgroup.members)
    if (rank != group_.fabric().rank())
      now.emplace(rank, pubsub::member_name_of(group_.fabric(), rank));
  for (auto& [key, by_relay] : told_)
    std::erase_if(by_relay, [&](const auto& one) { return !now.contains(one.first); });
  std::erase_if(told_, [](const auto& one) { return one.second.empty(); });
  const bool is_met =
      std::ranges::any_of(now, [&](const auto& one) { return !others_.contains(one.first); });
  if (is_met) {
    for (auto& [key, mine] : mine_) mine.is_sent = false;
    is_all_told_ = false;
  }
  others_ = std::move(now);
  ++changes_;
}

void RelayPeers::receive(Rank from, std::span<const std::byte> bytes) {
  auto message = read_message(bytes);
  if (from == group_.fabric().rank() || !message) return;
  const std::string key = topic_key(message->topic.name, message->topic.qos.order);
  if (message->share == TopicShare{}) {
    const auto found = told_.find(key);
    if (found == told_.end() || found->second.erase(from) == 0) return;
    if (found->second.empty()) told_.erase(found);
  } else {
    Told& told = told_[key][from];
    if (told.topic == message->topic && told.share == message->share) return;
    told = {.topic = std::move(message->topic), .share = message->share};
  }
  ++changes_;
}

std::size_t RelayPeers::send() {
  if (is_all_told_ || !joined()) return 0;
  std::size_t sent = 0;
  for (auto it = mine_.begin(); it != mine_.end();) {
    Told& mine = it->second;
    if (!mine.is_sent) {
      if (multicast_->send(make_message(mine.topic, mine.share)) != multicast::SendResult::sent)
        return sent;
      mine.is_sent = true;
      ++sent;
    }
    it = mine.share == TopicShare{} ? mine_.erase(it) : std::next(it);
  }
  is_all_told_ = true;
  return sent;
}

std::vector<SharedTopic> RelayPeers::used_by_others() const {
  std::vector<SharedTopic> used;
  for (const auto& [key, by_relay] : told_) {
    const auto user =
        std::ranges::find_if(by_relay, [](const auto& one) { return one.second.share.uses; });
    if (user != by_relay.end()) used.push_back(user->second.topic);
  }
  return used;
}

std::vector<std::string> RelayPeers::able_others(const std::string& key) const {
  const auto found = told_.find(key);
  const auto cannot = [&](Rank relay) {
    if (found == told_.end()) return false;
    const auto told = found->second.find(relay);
    return told != found->second.end() && told->second.share.cannot;
  };
  std::vector<std::string> able;
  for (const auto& [relay, name] : others_)
    if (!cannot(relay)) able.push_back(name);
  return able;
}

}  // namespace dunlin::relay
