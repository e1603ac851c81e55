#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "assert.hpp"
#include "pubsub/carrier.hpp"
#include "pubsub/topic_core.hpp"
#include "pubsub/topic_qos.hpp"

/// The topics of an order: how they get their numbers, and what a member that comes in is given
/// (PUB-O2, PUB-O3).
namespace dunlin::pubsub {
namespace {

constexpr std::uint32_t kStateVersion = 1;

void write_declaration(Writer& writer, const TopicCore& topic) {
  writer.text(topic.name());
  writer.text(topic.type_name());
  writer.text(describe(topic.qos()));
}

}  // namespace

struct Carrier::Declaration {
  std::string name;
  std::string type_name;
  TopicQos qos;
};

/// The declaration in a message; none if it is no topic of this order.
std::optional<Carrier::Declaration> Carrier::read_declaration(Reader& reader) const {
  Declaration declaration;
  declaration.name = reader.text();
  declaration.type_name = reader.text();
  const std::optional<TopicQos> qos = read_topic_qos(reader.text());
  if (!reader.good() || !qos || qos->order != order_) return std::nullopt;
  declaration.qos = *qos;
  try {
    check_topic_name(declaration.name);
    check_topic_qos(declaration.name, declaration.qos);
  } catch (const Error&) {
    return std::nullopt;
  }
  return declaration;
}

void Carrier::add(std::shared_ptr<TopicCore> topic) {
  const std::string who = "topic '" + topic->name() + "': ";
  const std::string order = "the order '" + std::string(order_.view()) + "'";
  if (topic->qos().ring_bytes != ring_bytes_)
    throw Error(who + "ring_bytes " + std::to_string(topic->qos().ring_bytes) + ", and " + order +
                " has " + std::to_string(ring_bytes_) +
                " here; topics that share an order share its rings: give the same");
  if (topics_.size() >= kMaxTopicsOfAnOrder)
    throw Error(who + order + " has " + std::to_string(topics_.size()) +
                " topics; more are not possible (kMaxTopicsOfAnOrder)");
  topic->carried_by(*this);
  topic->refresh_members();
  waiting_.push_back({.topic = topic.get(), .declared = false});
  wake(*topic);
  topics_.push_back(std::move(topic));
  fruitless_polls_ = 0;
}

void Carrier::remove(const std::shared_ptr<TopicCore>& topic) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.topic == topic.get(); });
  if (!why_left_.empty()) std::erase(numbered_, topic.get());  // nothing comes any more
  std::erase(awake_, topic.get());
  topic->end();
  std::erase(topics_, topic);
}

/// Declares each topic once: what is sent comes back, if this member stays.
std::size_t Carrier::declare_topics() {
  if (waiting_.empty() || !channel_->joined()) [[likely]]
    return 0;
  std::size_t sent = 0;
  for (Waiting& one : waiting_) {
    if (one.declared) continue;
    std::vector<std::byte> message = make_message({.kind = Kind::declare_topic}, nullptr);
    Writer writer(message);
    write_declaration(writer, *one.topic);
    if (channel_->send(message) != multicast::SendResult::sent) break;
    one.declared = true;
    ++declaring_;
    ++sent;
  }
  return sent;
}

void Carrier::declared(const multicast::Delivery& delivery) {
  const auto& members = channel_->subgroup().members;
  const bool is_mine =
      delivery.sender < members.size() && members[delivery.sender] == group_.fabric().rank();
  if (is_mine && declaring_ > 0) --declaring_;
  Reader reader(delivery.message.subspan(kHeaderBytes));
  if (const auto declaration = read_declaration(reader)) give_number(*declaration);
}

/// PUB-O2: all members call this at the same place of the order.
void Carrier::give_number(const Declaration& declaration) {
  const auto has_its_name = [&](const TopicCore& one) { return one.name() == declaration.name; };
  if (std::ranges::any_of(numbered_, [&](TopicCore* one) { return has_its_name(*one); })) return;
  const auto mine =
      std::ranges::find_if(waiting_, [&](const Waiting& one) { return has_its_name(*one.topic); });
  TopicCore* topic = nullptr;
  if (mine != waiting_.end()) {
    topic = mine->topic;
    waiting_.erase(mine);
    const std::string who = "topic '" + topic->name() + "': ";
    if (numbered_.size() >= kMaxTopicsOfAnOrder)
      return topic->refuse(who + "the order '" + std::string(order_.view()) + "' has " +
                           std::to_string(numbered_.size()) +
                           " topics; more are not possible (kMaxTopicsOfAnOrder)");
    if (topic->qos() != declaration.qos) {
      topic->refuse(who + "this member gives '" + describe(topic->qos()) +
                    "', and it was begun with '" + describe(declaration.qos) + "'");
      topic = nullptr;
    }
  }
  if (numbered_.size() >= kMaxTopicsOfAnOrder) return;
  if (topic == nullptr) {
    auto made = std::make_shared<TopicCore>(group_, clock_, declaration.name, declaration.qos,
                                            declaration.type_name);
    made->carried_by(*this);
    made->refresh_members();
    topic = made.get();
    topics_.push_back(std::move(made));
  }
  DUNLIN_ASSERT(topic->number() == 0, "PUB-O2: a topic of an order gets its number once");
  numbered_.push_back(topic);
  topic->give_number(static_cast<std::uint32_t>(numbered_.size()));
}

// --- the state of an order -----------------------------------------------------------------------

std::vector<std::byte> Carrier::save() {
  members_may_have_changed();
  std::vector<std::byte> state;
  Writer writer(state);
  writer.u32(kStateVersion);
  writer.u64(position_);
  writer.u32(static_cast<std::uint32_t>(numbered_.size()));
  for (TopicCore* const topic : numbered_) {
    write_declaration(writer, *topic);
    const std::vector<std::byte> of_topic = topic->save();
    writer.u64(of_topic.size());
    writer.bytes(of_topic);
  }
  return state;
}

void Carrier::load(std::span<const std::byte> state) {
  members_may_have_changed();
  Reader reader(state);
  const auto check = [&](bool good, const char* what) {
    if (good && reader.good()) return;
    throw Error("order '" + std::string(order_.view()) +
                "': cannot load the state that another member sent: " + what +
                "; do all members use the same release?");
  };
  check(reader.u32() == kStateVersion, "it is of another version");
  position_ = reader.u64();
  for (std::uint32_t left = reader.u32(); left > 0 && reader.good(); --left) {
    const auto declaration = read_declaration(reader);
    const auto of_topic = reader.bytes(reader.u64());
    check(declaration.has_value(), "a topic of it is none");
    const std::size_t before = numbered_.size();
    give_number(*declaration);
    check(numbered_.size() == before + 1, "it has a topic twice, or too many");
    numbered_.back()->load(of_topic, TopicCore::StateFrom::member);
  }
  check(true, "it ends too early");
}

}  // namespace dunlin::pubsub
