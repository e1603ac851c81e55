#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <span>
#include <type_traits>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/progress.hpp>

// In a unity build, g++ takes the frame of a protocol for a type of a header, which must not have
// members of local types.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

namespace dunlin::remote {

/// Small messages between the founders, unless told otherwise, each of which arrives, in order,
/// unless its sender or receiver fails: those that the fabric cannot take yet wait here. A message
/// to this process itself is handled in the next poll().
class ControlChannel {
 public:
  using Handler = std::function<void(Rank from, std::span<const std::byte> message)>;

  /// The handler runs inside the fabric's poll(), or in poll().
  ControlChannel(const Progress& progress, std::uint32_t channel, Handler handler);
  /// Between the members of the ranks below `ranks`.
  ControlChannel(const Progress& progress, std::uint32_t channel, Handler handler,
                 std::uint32_t ranks);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  template <class Message>
  void send(Rank to, const Message& message) {
    static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) <= kMaxMessageBytes);
    send(to, std::as_bytes(std::span(&message, 1)));
  }
  void send(Rank to, std::span<const std::byte> message);
  /// Makes sure that the next send() needs no memory; false if there is none for that.
  [[nodiscard]] bool expect_send() noexcept;
  std::size_t poll();

 private:
  struct Waiting {
    Rank to;
    std::size_t bytes;
    std::array<std::byte, kMaxMessageBytes> content;
  };
  Fabric& fabric_;
  std::uint32_t ranks_;
  std::uint32_t channel_;
  Handler handler_;
  std::list<Waiting> waiting_;
  std::list<Waiting> spare_;  // memory for further ones
  bool polling_ = false;
};

/// The message, if it is one of that size.
template <class Message>
[[nodiscard]] bool parse(std::span<const std::byte> from, Message& to) noexcept {
  if (from.size() != sizeof(Message)) return false;
  std::memcpy(&to, from.data(), sizeof to);
  return true;
}

}  // namespace dunlin::remote
