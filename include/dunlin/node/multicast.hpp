#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/multicast.hpp>
#include <dunlin/node/engine.hpp>

/// Ordered messages of a node's group, for any thread (multicast.hpp says what is promised).
///
///     auto orders = node.multicast("orders", {.on_delivery = [](const dunlin::NodeMessage& m) {
///       apply(m.sender, m.bytes);
///     }});
///     while (orders.send(order) == dunlin::multicast::SendResult::no_room)
///     std::this_thread::yield();
namespace dunlin {

/// A message that is delivered; it is valid until the callback returns.
struct NodeMessage {
  std::string_view sender;  // the member's name
  bool is_own = false;
  std::span<const std::byte> bytes;
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

struct MulticastSetup {
  /// Called with each message, in the order that all members see. Without an executor, the node's
  /// thread calls it, with the message in the ring, and no other call on the node's objects is done
  /// meanwhile; with one, messages are copied. Null: this member only sends.
  std::function<void(const NodeMessage& message)> on_delivery = nullptr;
  /// For members that come in later: `save` makes a state of all that was delivered here, and
  /// `load` takes it, before anything is delivered there (Multicast::on_state). The node's thread
  /// calls both. Null at all members: a later member begins with the first message of its first
  /// view. What they throw goes to on_exception: if `save` does, the member that comes asks another
  /// one; if `load` does, it leaves the subgroup.
  Multicast::Save save = nullptr;
  Multicast::Load load = nullptr;
  bool sends = true;  // this member may send
  MulticastOptions options = {};
};

namespace node {

/// A multicast, and the ring in which messages of other threads wait for it.
class MulticastObject final : public NodeObject {
 public:
  using Upcall =
      std::function<void(std::span<const multicast::Delivery> batch, MulticastObject& object)>;
  MulticastObject(Engine& engine, const std::string& name, MulticastSetup setup,
                  Upcall upcall = {});
  ~MulticastObject() override;

  // --- any thread --------------------------------------------------------------------------------
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message);
  /// Whether this member is in the subgroup, and has its state.
  [[nodiscard]] bool joined() const noexcept { return joined_.load(std::memory_order_acquire); }
  /// Waits until joined(). Throws Error when the time is up, or if this member is refused.
  void wait_until_joined(std::uint64_t timeout_ns);

  // --- under the lock ---------------------------------------------------------------------------
  [[nodiscard]] Multicast& core() noexcept { return *multicast_; }
  [[nodiscard]] const std::string& name_of(std::uint32_t sender) const { return names_.at(sender); }
  [[nodiscard]] bool is_me(std::uint32_t sender) const noexcept { return sender == me_; }
  std::size_t poll() override;
  void close() noexcept override { ring_.close(); }
  void end() noexcept override;
  [[nodiscard]] bool handed_over() override { return ring_.empty(); }

 private:
  void deliver(std::span<const multicast::Delivery> batch);
  void note_members(const Subgroup& subgroup);
  std::uint64_t dropped_ = 0;  // messages that were accepted, and cannot be sent any more

  Engine& engine_;
  const std::string name_;
  const bool sends_;
  std::shared_ptr<const std::function<void(const NodeMessage&)>> on_delivery_;  // null: none
  Upcall upcall_;
  RecordRing ring_;
  std::atomic<bool> joined_{false};
  std::vector<std::string> names_;  // of the subgroup's members
  std::uint32_t me_ = UINT32_MAX;
  std::unique_ptr<Multicast> multicast_;
};

}  // namespace node

class MulticastHandle {
 public:
  MulticastHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                  MulticastSetup setup);

  /// Sends a message, at once or from the node's thread. `sent`: the node has taken it, and sends
  /// it in the order of this thread's sends. `no_room`: nothing is sent; try again. `ended`: the
  /// node, or its membership in the subgroup, has ended. Throws Error for more than kMaxCastBytes.
  /// A callback on the node's thread must not try again in a loop, as nobody else makes room.
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message) {
    return object_->send(message);
  }
  [[nodiscard]] multicast::SendResult send(std::string_view text) {
    return object_->send(std::as_bytes(std::span(text)));
  }
  /// Waits until this member is in the subgroup, and has its state. Throws Error when the time is
  /// up.
  void wait_until_joined(std::uint64_t timeout_ns = 10'000'000'000) {
    object_->wait_until_joined(timeout_ns);
  }
  /// Whether all other members have what was sent here, and will deliver it even if this one ends.
  [[nodiscard]] bool acknowledged();
  [[nodiscard]] multicast::Counters counters();

 private:
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<node::MulticastObject> object_;
};

}  // namespace dunlin
