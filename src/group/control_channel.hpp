#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/limits.hpp>

#include "group/long_text.hpp"

namespace dunlin::group {

/// The member's name; a member of a fabric without names is called by its rank.
[[nodiscard]] inline std::string name_on(const Fabric& fabric, Rank rank) {
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? std::to_string(rank) : name;
}

/// The longest control message: a state of kMaxStateBytes, and its fields.
inline constexpr std::size_t kMaxControlBytes = kMaxStateBytes + (std::size_t{1} << 20);
/// The longest control message from a process that is no member yet.
inline constexpr std::size_t kMaxJoinerBytes = std::size_t{1} << 16;

/// Carries control messages of any length between the members of a fabric, in order between each
/// two. Short ones go as small messages; long ones are read from their sender's memory. Messages
/// for a failed peer are dropped, and a sender that announces more than `most_bytes` is expelled.
/// Each channel of a fabric has one ControlChannel. One thread at a time, that of the fabric.
class ControlChannel {
 public:
  struct Options {
    std::size_t most_bytes = kMaxControlBytes;
    std::uint32_t channel = kGroupChannel;
  };
  /// Throws Error if the channel is in use.
  ControlChannel(Fabric& fabric, Options options);
  explicit ControlChannel(Fabric& fabric) : ControlChannel(fabric, Options()) {}
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  void send(Rank to, std::vector<std::byte> text);
  /// Sends what there is room for, and hands up what has arrived. Does not poll the fabric.
  using Handler = std::function<void(Rank from, std::vector<std::byte> text)>;
  std::size_t poll(const Handler& handler);
  /// Drops what is under way to and from a member that has gone for good, alive or not.
  void forget(Rank peer) noexcept;
  /// Whether poll() has something to send or to hand up.
  [[nodiscard]] bool pending() const noexcept;
  [[nodiscard]] std::string describe() const;
  /// `flag`, which must outlive this channel, becomes true whenever a control message arrives.
  void flag_arrivals(bool& flag) noexcept { flag_ = &flag; }
  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }

 private:
  struct Outgoing {
    std::deque<std::vector<std::byte>> texts;
    std::size_t sent = 0;                  // bytes sent of the first message
    std::unique_ptr<OfferedText> offered;  // the first message
    bool in_fragments = false;             // the first message goes in fragments
    void next();
  };
  struct Incoming {
    std::vector<std::byte> fragments;  // the part of a control message that has come
    std::unique_ptr<FetchedText> fetched;
  };
  struct Arrived {
    Rank from;
    std::vector<std::byte> bytes;
  };
  bool send_some(Rank to, Outgoing& outgoing);
  bool send_fragment(Rank to, Outgoing& outgoing);
  bool offer(Rank to, Outgoing& outgoing);
  std::size_t fetch(Rank from, Incoming& incoming);
  [[nodiscard]] static bool has_more(const std::unique_ptr<Outgoing>& outgoing) noexcept {
    return outgoing != nullptr && !outgoing->texts.empty();
  }
  [[nodiscard]] static bool offers(const std::unique_ptr<Outgoing>& outgoing) noexcept {
    return outgoing != nullptr && outgoing->offered != nullptr;
  }
  void take(Rank from, std::span<const std::byte> message);
  void take(Rank from, const LongTextMessage& message);
  void arrive(Rank from, std::vector<std::byte> text);
  void expel(Rank from);  // the sender announced too much

  Fabric& fabric_;
  Options options_;
  // By rank, as far as needed; null for a member that nothing was sent to, or that has failed.
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<Incoming> incoming_;  // by rank
  std::size_t fetching_ = 0;        // how many of these fetch a text
  std::deque<Arrived> arrived_;
  bool* flag_ = nullptr;
};

}  // namespace dunlin::group
