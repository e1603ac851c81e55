#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/channel.hpp"
#include "pubsub/poll_clock.hpp"
#include "pubsub/wire.hpp"

namespace dunlin::pubsub {

class TopicCore;

/// The multicast of one topic, or of all topics that share an order (TopicQos::order).
///
///  PUB-O1  The messages of an order's topics are messages of one subgroup. So all its members
///          deliver them in one order, and count them alike.
///  PUB-O2  A topic of an order has the number of its first declaration, which lies in the
///          order: so all members agree on it, on its policies, and on which later one is refused.
///  PUB-W1  A member is a sender of the subgroup while it has a writer, or a message of its own
///          that the others may lack; readers send nothing but their announcements.
///  PUB-O3  A member of an order has each of its topics, with what it stores, also those of
///          which it has no entity: so it can be given any of them later, without gap or
///          duplicate (PUB-T2).
class Carrier {
 public:
  /// Carries this topic alone. Asks to be in its subgroup. Throws Error.
  Carrier(Group& group, std::shared_ptr<PollClock> clock, const ParticipantOptions& options,
          std::shared_ptr<TopicCore> topic);
  /// Carries the topics that share the order of this one; add() adds them. Asks to be in the
  /// order's subgroup. Throws Error.
  Carrier(Group& group, std::shared_ptr<PollClock> clock, const ParticipantOptions& options,
          const TopicQos& qos);
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  ~Carrier();

  /// Adds a topic of this order, whose name no topic in topics() has. It may send once it has its
  /// number. Throws Error.
  void add(std::shared_ptr<TopicCore> topic);
  /// Removes a topic that was refused, so that another one of its name can be added.
  void remove(const std::shared_ptr<TopicCore>& topic);
  [[nodiscard]] const OrderName& order() const noexcept { return order_; }
  [[nodiscard]] std::size_t ring_bytes() const noexcept { return ring_bytes_; }
  /// A token that keeps the carrier in use while there is a copy.
  [[nodiscard]] std::shared_ptr<void> hold() const noexcept { return hold_; }
  [[nodiscard]] bool joined() const noexcept { return channel_ && channel_->joined(); }
  /// A sentence that says why this member is out of the subgroup without having asked for it; empty
  /// otherwise.
  [[nodiscard]] const std::string& why_left() const noexcept { return why_left_; }
  [[nodiscard]] const std::vector<std::shared_ptr<TopicCore>>& topics() const noexcept {
    return topics_;
  }
  /// The topics of an order, as other members see them; empty without an order.
  [[nodiscard]] std::vector<TopicInfo> topics_of_order() const;
  [[nodiscard]] std::size_t topics_of_order_count() const noexcept { return numbered_.size(); }
  /// The topic of that name; null: there is none.
  [[nodiscard]] std::shared_ptr<TopicCore> find(std::string_view name) const noexcept;

  void polled_by(ParticipantCore& participant) noexcept { participant_ = &participant; }
  [[nodiscard]] ParticipantCore& participant() const noexcept { return *participant_; }
  std::size_t poll();
  /// Whether the carrier has had nothing to do for some polls, and waits for no time and no
  /// message.
  [[nodiscard]] bool rests() const noexcept { return fruitless_polls_ >= kFruitlessUntilRest; }
  /// Tells handlers what has changed; `failure` becomes the first exception of a handler.
  void flush(std::exception_ptr& failure);
  [[nodiscard]] std::uint64_t due_ns() const noexcept;
  /// Whether no entity of its topics is left here, and all that was sent here has come back.
  [[nodiscard]] bool unused() noexcept;
  /// Asks to leave the subgroup.
  void leave();
  [[nodiscard]] bool leaving() const noexcept { return leaving_; }
  [[nodiscard]] bool left() const noexcept { return !channel_ || channel_->left(); }
  /// Waits at most so long until the others have what was sent here; end() must follow.
  void hand_over(std::uint32_t timeout_ms) noexcept {
    if (channel_) channel_->hand_over(timeout_ms);
  }
  /// Ends the carrier; calls on entities that still exist return `ended`.
  void end() noexcept;

  // --- for its topics ----------------------------------------------------------------------------
  /// The channel; null once the carrier has ended.
  [[nodiscard]] Channel* channel() const noexcept { return channel_.get(); }
  /// Counts the sample at hand, in an order.
  void count_sample() noexcept { position_ += is_order() ? 1 : 0; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Makes the carrier poll the topic, until the topic is idle again.
  void wake(TopicCore& topic);

 private:
  [[nodiscard]] bool is_order() const noexcept { return !order_.empty(); }
  [[nodiscard]] TopicCore& only() const noexcept { return *topics_.front(); }
  void members_may_have_changed();
  [[nodiscard]] bool choose_role(bool has_to_send);
  std::size_t drain();
  void let_idle_go();
  [[nodiscard]] TopicCore* receiver_of(const multicast::Delivery& delivery);
  void on_left();

  // These are in carrier_topics.cpp.
  std::size_t declare_topics();
  void declared(const multicast::Delivery& delivery);
  struct Declaration;
  [[nodiscard]] std::optional<Declaration> read_declaration(Reader& reader) const;
  void give_number(const Declaration& declaration);
  [[nodiscard]] std::vector<std::byte> save();
  void load(std::span<const std::byte> state);

  Group& group_;
  ParticipantCore* participant_ = nullptr;
  std::shared_ptr<PollClock> clock_;
  OrderName order_;
  std::size_t ring_bytes_ = 0;  // only for an order
  std::vector<std::shared_ptr<TopicCore>> topics_;
  std::vector<TopicCore*> awake_;     // topics that are not idle
  bool polls_ = false;                // a poll is under way
  std::vector<TopicCore*> numbered_;  // an order's topics by number, from 1 on
  struct Waiting {
    TopicCore* topic;
    bool declared;
  };
  std::vector<Waiting> waiting_;  // topics that wait for their numbers
  std::uint32_t declaring_ = 0;   // declarations of this member that are on their way
  std::uint64_t position_ = 0;    // the order's last sample
  std::uint64_t members_seen_ = 0;
  static constexpr std::uint32_t kFruitlessUntilRest = 64;
  std::uint32_t fruitless_polls_ = 0;
  bool leaving_ = false;
  // --- whether this member is a sender (PUB-W1) ---
  const std::uint64_t linger_ns_;
  bool sends_ = true;                           // what this member has asked for last
  std::uint64_t sends_until_ns_ = kInfiniteNs;  // kInfiniteNs: it does not wait to cease
  bool lingers_ = false;                        // that time has not come; else means nothing
  std::uint64_t role_checked_ = 0;              // in this generation of the subgroup
  std::string why_left_;
  std::shared_ptr<void> hold_ = std::make_shared<bool>();
  std::unique_ptr<Channel> channel_;  // the last member, because its handlers use the others
};

}  // namespace dunlin::pubsub
