#include <string>

#include "assert.hpp"
#include "fabric/core/core.hpp"

/// Events and messages: handlers run within poll() only (FAB-F5), and may do what they like there.
namespace dunlin {

std::uint64_t FabricCore::subscribe(Fabric::EventHandler handler) {
  const std::uint64_t id = next_subscriber_++;
  subscribers_.push_back(std::make_unique<Subscriber>(Subscriber{id, std::move(handler)}));
  return id;
}

void FabricCore::unsubscribe(std::uint64_t id) noexcept {
  for (auto& subscriber : subscribers_)
    if (subscriber->id == id) subscriber->id = 0;
  ++handler_depth_;
  leave_handler();
}

/// A running handler may have unsubscribed itself: so nothing is destroyed until no handler runs.
void FabricCore::leave_handler() noexcept {
  if (--handler_depth_ > 0) return;
  std::erase_if(subscribers_, [](const auto& subscriber) { return subscriber->id == 0; });
}

void FabricCore::emit(const Event& event) {
  DUNLIN_ASSERT_ALWAYS(polling_, "FAB-F5: handlers run within poll() only");
  ++handled_;
  ++handler_depth_;
  const std::size_t present = subscribers_.size();  // later subscribers did not ask for this event
  for (std::size_t i = 0; i < present; ++i) {
    Subscriber& subscriber = *subscribers_[i];
    if (subscriber.id != 0) subscriber.handler(event);
  }
  leave_handler();
}

void FabricCore::receive(std::uint32_t channel, Fabric::MessageHandler handler) {
  if (channel >= kMaxChannels)
    throw Error("channel " + std::to_string(channel) + " is not possible: channels are 0 to " +
                std::to_string(kMaxChannels - 1) + " (kMaxChannels)");
  handlers_.resize(kMaxChannels);
  handlers_[channel] =
      handler ? std::make_shared<const Fabric::MessageHandler>(std::move(handler)) : nullptr;
  ignored_[channel] = false;
  if (!handlers_[channel]) return;
  must_drain_ = true;
  must_attend();
}

void FabricCore::ignore(std::uint32_t channel) {
  receive(channel, [](Rank, std::span<const std::byte>) {});
  ignored_[channel] = true;
}

bool FabricCore::receives(std::uint32_t channel) const noexcept {
  return channel < handlers_.size() && handlers_[channel] && !ignored_[channel];
}

bool FabricCore::deliver(Rank from, std::uint32_t channel, std::span<const std::byte> message) {
  if (states_[from].expelled) return true;
  if (channel >= handlers_.size() || !handlers_[channel]) return false;
  const auto handler = handlers_[channel];  // a copy: it may replace itself
  DUNLIN_ASSERT(polling_, "FAB-F5: handlers run within poll() only");
  (*handler)(from, message);
  return true;
}

void FabricCore::must_attend() noexcept {
  has_duties_ = true;
  backend_->attend_soon();
  if (prepared_ && sleeper_->serves_loop()) sleeper_->ring();
}

void FabricCore::perform_duties() {
  has_duties_ = false;
  if (std::exchange(must_drain_, false))
    for (Rank peer = 0; peer < size(); ++peer) backend_->drain(peer);
  for (const auto& [peer, how] : std::exchange(failing_soon_, {})) fail(peer, how);
  for (const Rank peer : std::exchange(expelled_, {})) announce_failure(peer, {});
  if (std::exchange(must_announce_kills_, false)) announce_kills();
  match_waiting();
}

}  // namespace dunlin
