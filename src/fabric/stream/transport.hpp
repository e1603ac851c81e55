#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/fabric.hpp>

#include "fabric/stream/device_operations.hpp"
#include "fabric/stream/frame.hpp"

/// A transport carries frames: one ordered, reliable stream to each peer, connected when the fabric
/// is made, or when the peer has come into it. It does not know the contents of a frame. Called by
/// the fabric's thread only.
namespace dunlin::stream {

/// Memory that is to be filled; null: the bytes are thrown away.
struct Place {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

/// Gets the arrivals, from within Transport::progress().
class Receiver {
 public:
  /// Takes a whole frame, on a whole word; the memory is gone when this returns.
  virtual void take_frame(Rank from, std::span<const std::byte> frame) = 0;
  /// Called when a frame is here, and the bytes behind it are not: adds the places where they go,
  /// in their order. take_frame() follows when the places are filled. Returns false if there is
  /// something wrong with the frame, which the receiver handles then. (Transport::attach)
  [[nodiscard]] virtual bool find_places(Rank, std::span<const std::byte> /*frame*/,
                                         std::vector<Place>&) {
    return false;
  }
  /// Called when there is a stream to a newcomer: frames to it can be lent. Called once, before its
  /// first frame.
  virtual void take_link(Rank) {}
  /// Called when the stream has ended; once, and after all frames that came on it. A newcomer may
  /// call again if it has no stream any more, and take_link() was never called for it.
  virtual void take_end(Rank from, std::string why) = 0;
  /// Called when an operation by device for which a caller waits is finished.
  virtual void take_finished(Rank, Completion&, bool /*well*/) noexcept {}

 protected:
  ~Receiver() = default;
};

/// STR-S8: so long a fabric that ends gives its peers to take what it had for them.
inline constexpr std::uint64_t kFarewellNs = 1'000'000'000;

/// A member that is let into a fabric which works.
struct Newcomer {
  std::span<const std::byte> endpoint;  // where it listens
  Proof ours;                           // STR-S7: what we show it
  Proof theirs;                         // STR-S7: what it must show us
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// The size of all buffers: kMinFrameBytes to kMaxFrameBytes.
  [[nodiscard]] virtual std::size_t frame_bytes() const noexcept = 0;
  /// A buffer in which to compose the next frame to the peer, on a whole word; null if all are
  /// under way, which progress() will change. It stays lent until it is committed.
  [[nodiscard]] virtual std::byte* lend(Rank to) noexcept = 0;
  /// Sends the first `bytes` of the buffer that is lent.
  virtual void commit(Rank to, std::size_t bytes) noexcept = 0;
  /// Whether no frame to the peer is under way: another frame would leave at once then.
  [[nodiscard]] virtual bool idle(Rank to) const noexcept = 0;
  /// For checks of what is rare and costs a system call: called before progress() whenever the time
  /// is known, which is so some ten thousand times a second, and after each sleep.
  virtual void look_around(std::uint64_t /*now_ns*/) noexcept {}
  /// Moves on what is under way, and hands over what has arrived: a bounded amount. The receiver
  /// may lend, commit and close meanwhile.
  virtual void progress(Receiver& receiver) noexcept = 0;
  /// Makes room for a caller that posts again and again without a poll(): takes the device's
  /// completions, and hands the receiver finished operations and nothing else. Frames that have
  /// arrived, and ends, wait for progress(). Not to be called from within progress(). Where nothing
  /// but progress() can make room, this does nothing.
  virtual void relieve(Receiver&) noexcept {}
  /// Ends the stream; nothing is taken from the peer any more, and take_end() is not called.
  virtual void close(Rank peer) noexcept = 0;

  // Members that come while the fabric works (STR-J1 to STR-J4). A transport that has no way for
  // them leaves these as they are.
  /// The address where newcomers call. From the first call on, the transport listens there, for
  /// good. Throws Error.
  [[nodiscard]] virtual std::vector<std::byte> endpoint() { return {}; }
  /// Makes room for more ranks: new ranks below `first` stay without a stream, and each newcomer
  /// calls here with its proof, as often as it likes; the first call that is right makes its
  /// stream. Not called from within progress(). Throws Error, and changes nothing then.
  virtual void admit(Rank /*first*/, std::span<const Newcomer> /*newcomers*/) {
    throw Error("members cannot come into a fabric over these streams while it works");
  }
  /// Whether a member that listens there is on this host, as far as is known.
  [[nodiscard]] virtual bool is_on_this_host(std::span<const std::byte> /*endpoint*/) const {
    return false;
  }

  // Bytes behind a frame: the puts of a frame may leave theirs where they are, for a transport that
  // gathers them when it sends the frame, and scatters them when it receives it.
  /// Whether bytes can be behind a frame.
  [[nodiscard]] virtual bool carries_behind() const noexcept { return false; }
  /// Adds bytes behind the frame whose buffer is lent; returns how many, 0 if there is no room for
  /// more. The bytes are read until the next settle() or commit() to this peer returns.
  [[nodiscard]] virtual std::size_t attach(Rank, const std::byte*, std::size_t) noexcept {
    return 0;
  }
  /// How many bytes were attached since the last settle() or commit().
  [[nodiscard]] virtual std::size_t unsettled_bytes(Rank) const noexcept { return 0; }
  /// Copies the attached bytes.
  virtual void settle(Rank) noexcept {}
  /// Called before this memory is released: bytes that were to be placed in it are thrown away.
  virtual void forget_places(std::span<const std::byte>) noexcept {}

  /// The operations that its devices perform by themselves; null: none.
  [[nodiscard]] virtual DeviceOperations* device() noexcept { return nullptr; }

  /// Adds to an epoll set what becomes readable when progress() has something to do.
  virtual void watch(int epoll) = 0;
  /// Whether it is safe to wait for those descriptors now; if not, progress() has something to do
  /// already.
  [[nodiscard]] virtual bool may_wait() noexcept = 0;
};

}  // namespace dunlin::stream
