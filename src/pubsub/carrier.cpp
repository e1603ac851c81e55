#include "pubsub/carrier.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/limits.hpp>

#include "pubsub/topic_core.hpp"
#include "scoped_flag.hpp"

namespace dunlin::pubsub {
namespace {

constexpr std::size_t kMessagesAPoll = kMaxBatchMessages;

}  // namespace

Carrier::Carrier(Group& group, std::shared_ptr<PollClock> clock, const ParticipantOptions& options,
                 std::shared_ptr<TopicCore> topic)
    : group_(group), clock_(std::move(clock)), linger_ns_(options.sender_linger_ms * kNsPerMs) {
  topic->carried_by(*this);
  wake(*topic);
  topics_.push_back(std::move(topic));
  Channel::Handlers handlers{
      .save = [this] { return members_may_have_changed(), only().save(); },
      .load =
          [this](std::span<const std::byte> state) {
            members_may_have_changed();
            only().load(state, TopicCore::StateFrom::member);
          },
      .replay = [this](const multicast::Logged& logged) { only().replay(logged); },
      .load_logged =
          [this](std::span<const std::byte> state) {
            members_may_have_changed();
            only().load(state, TopicCore::StateFrom::log);
          }};
  if (only().stays_in_log()) handlers.keep_from = [this] { return only().keep_log_from(); };
  channel_ = std::make_unique<Channel>(group, only().name(), only().qos(), options,
                                       only().type_name(), std::move(handlers));
}

Carrier::Carrier(Group& group, std::shared_ptr<PollClock> clock, const ParticipantOptions& options,
                 const TopicQos& qos)
    : group_(group),
      clock_(std::move(clock)),
      order_(qos.order),
      ring_bytes_(qos.ring_bytes),
      linger_ns_(options.sender_linger_ms * kNsPerMs) {
  channel_ = std::make_unique<Channel>(
      group, qos, options,
      Channel::Handlers{.save = [this] { return save(); },
                        .load = [this](std::span<const std::byte> state) { load(state); }});
}

Carrier::~Carrier() = default;

std::shared_ptr<TopicCore> Carrier::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(
      topics_, name, [](const auto& one) -> std::string_view { return one->name(); });
  return found != topics_.end() ? *found : nullptr;
}

std::vector<TopicInfo> Carrier::topics_of_order() const {
  std::vector<TopicInfo> all;
  if (!channel_ || !why_left_.empty()) return all;
  std::vector<std::string> members;
  for (const Rank rank : channel_->subgroup().members)
    members.push_back(member_name_of(group_.fabric(), rank));
  for (TopicCore* const topic : numbered_)
    all.push_back({.name = topic->name(),
                   .type_name = topic->type_name(),
                   .qos = topic->qos(),
                   .members = members});
  return all;
}

std::size_t Carrier::poll() {
  if (!channel_ || polls_) return 0;  // or called by a handler, to which a sample is lent
  const ScopedFlag polls(polls_);
  members_may_have_changed();
  if (channel_->left() && why_left_.empty() && !leaving_) [[unlikely]]
    on_left();
  std::size_t done = is_order() ? declare_topics() : 0;
  bool has_to_send = !waiting_.empty() || declaring_ > 0;
  // The loop is by index, because handlers may add topics.
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    done += awake_[i]->begin_poll();
    has_to_send = has_to_send || awake_[i]->has_to_send();
  }
  if (has_to_send && !sends_ && unused()) has_to_send = false;  // this member is about to leave
  done += drain();
  done += choose_role(has_to_send) ? 1 : 0;
  bool waits = leaving_ || declaring_ > 0 || sends_until_ns_ != kInfiniteNs;
  for (std::size_t i = 0; i < awake_.size(); ++i) waits = awake_[i]->end_poll() || waits;
  fruitless_polls_ = done > 0 || waits ? 0 : fruitless_polls_ + (rests() ? 0U : 1U);
  return done;
}

/// PUB-W1: asks to be a sender while this member has something to send, and for a while after.
/// Returns whether it has asked for a change, which the next poll sends.
bool Carrier::choose_role(bool has_to_send) {
  if (leaving_ || channel_->left() || group_.ended()) [[unlikely]] {
    sends_until_ns_ = kInfiniteNs;
    return false;
  }
  if (has_to_send) {
    sends_until_ns_ = kInfiniteNs;
    if (sends_) [[likely]]
      return false;
  } else if (sends_) {
    // Not the poll's clock: what calls behind the poll see of the time must not depend on this.
    const std::uint64_t now_ns = group_.fabric().now_ns();
    if (sends_until_ns_ == kInfiniteNs) sends_until_ns_ = now_ns + linger_ns_;
    lingers_ = now_ns < sends_until_ns_;
    if (lingers_ || !channel_->joined() || !channel_->acknowledged()) return false;
    sends_until_ns_ = kInfiniteNs;
    role_checked_ = members_seen_;
  } else {
    // A change may have ended before one of the last messages counted, which is to be sent again.
    if (std::exchange(role_checked_, members_seen_) == members_seen_ || channel_->acknowledged())
      return false;
  }
  sends_ = !sends_;
  channel_->set_sends(sends_);
  return true;
}

void Carrier::members_may_have_changed() {
  if (!channel_->members_changed(members_seen_)) [[likely]]
    return;
  // Handlers are told of writers that are gone, and may add topics: so the loop is by index.
  for (std::size_t i = 0; i < topics_.size(); ++i) {
    const auto topic = topics_[i];
    topic->refresh_members();
    wake(*topic);
  }
}

void Carrier::wake(TopicCore& topic) {
  if (std::exchange(topic.is_awake, true)) [[likely]]
    return;
  awake_.push_back(&topic);
}

/// Called when this member is out of the subgroup, and did not ask for it.
void Carrier::on_left() {
  why_left_ =
      channel_->why_left().empty() ? "this member is out of its subgroup" : channel_->why_left();
  declaring_ = 0;
  for (const auto& topic : topics_) {
    if (!topic->why_refused.empty()) continue;
    topic->refuse("topic '" + topic->name() + "': " + why_left_);
  }
}

std::size_t Carrier::drain() {
  std::size_t most = kMessagesAPoll;
  std::size_t given = 0;
  bool waits = false;
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    given += awake_[i]->begin_drain(most);
    waits = awake_[i]->waits() || waits;
  }
  std::size_t count = 0;
  while (count < most && !waits) {
    const auto delivery = channel_->next();
    if (!delivery) break;
    members_may_have_changed();
    // This message makes no reader of another topic full.
    if (TopicCore* const topic = receiver_of(*delivery); topic != nullptr) [[likely]] {
      topic->take(*delivery);
      waits = topic->waits();
      if (is_order() && !topic->is_idle()) wake(*topic);
    }
    ++count;
  }
  for (std::size_t i = 0; i < awake_.size(); ++i) awake_[i]->end_drain(count);
  return given + count;
}

/// The topic that gets the message; null if it is no message of a topic.
TopicCore* Carrier::receiver_of(const multicast::Delivery& delivery) {
  if (!is_order()) [[likely]]
    return &only();
  const auto header = read_header(delivery.message);
  if (!header) return nullptr;
  if (header->kind == Kind::declare_topic) {
    declared(delivery);
    return nullptr;
  }
  const bool known = header->topic > 0 && header->topic <= numbered_.size();
  return known ? numbered_[header->topic - 1] : nullptr;
}

void Carrier::flush(std::exception_ptr& failure) {
  for (std::size_t i = 0; i < awake_.size(); ++i) awake_[i]->flush(failure);
  let_idle_go();
}

/// A topic without an order is polled in any case; most topics of an order can be those of other
/// members.
void Carrier::let_idle_go() {
  if (!is_order()) return;
  std::erase_if(awake_, [](TopicCore* one) {
    one->is_awake = !one->is_idle();
    return !one->is_awake;
  });
}

std::uint64_t Carrier::due_ns() const noexcept {
  // Once that time has passed, a write of another member ends the wait.
  std::uint64_t due_ns = lingers_ ? sends_until_ns_ : kInfiniteNs;
  for (const TopicCore* const topic : awake_) due_ns = std::min(due_ns, topic->due_ns());
  return due_ns;
}

bool Carrier::unused() noexcept {
  if (!awake_.empty() && awake_.front()->has_endpoints()) [[likely]]
    return false;
  bool unused = declaring_ == 0 && hold_.use_count() == 1;
  // Leaving takes the endpoints along (PUB-T4), so this member need not become a sender for that.
  const bool leaving_withdraws = !is_order() && !sends_;
  for (std::size_t i = 0; i < topics_.size() && (unused || is_order()); ++i) {
    const bool is_free = topics_[i].use_count() == 1 && topics_[i]->unused(leaving_withdraws);
    if (is_free && topics_[i]->is_held()) topics_[i]->let_go();
    unused = unused && is_free;
  }
  return unused;
}

void Carrier::leave() {
  leaving_ = true;
  if (channel_) channel_->leave();
}

void Carrier::end() noexcept {
  for (const auto& topic : topics_) topic->end();
  channel_.reset();
}

}  // namespace dunlin::pubsub
