#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <dunlin/fabric.hpp>

/// The operations of a transport beside carrying frames, if its devices reach a peer's memory by
/// themselves. Operations by device and frames to one peer leave in the order in which they were
/// given, and the peer applies a frame after the operations before it are placed.
///  STR-R1  A device performs only operations whose promises it keeps (Abilities); all others go by
///       frames.
///  STR-R2  Memory that was opened stays where it is until every peer has let go of it, or is gone,
///      and until our own device has finished what was started before: it may still be reading from
///      it.
namespace dunlin::stream {

/// The key by which a peer's device finds opened memory.
struct Key {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

class Receiver;

class DeviceOperations {
 public:
  struct Abilities {
    /// Whether writes are placed in the order posted, each line at once or in ascending order of
    /// its words: so they are signals. If not, devices write only bytes that no process polls
    /// (put).
    bool ordered_writes = false;
    /// Whether parts of words, and unaligned words, are placed and fetched at once, too.
    bool partial_words = false;
    /// Whether reads are as FAB-F2 requires.
    bool reads = false;
    bool atomics = false;
    bool atomics_coherent_with_cpu = false;
    std::uint32_t max_inline_bytes = 0;
    std::uint32_t queue_slots = 0;
  };

  [[nodiscard]] virtual const Abilities& abilities() const noexcept = 0;
  /// Lets the devices of all peers reach our memory. Throws Error.
  [[nodiscard]] virtual Key open(std::span<std::byte> memory) = 0;
  virtual void close(std::span<std::byte> memory) noexcept = 0;

  /// Whether the local memory of the operation can be used, or is small enough to be copied.
  [[nodiscard]] virtual bool can(const Operation& operation) const noexcept = 0;
  enum class Started : std::uint8_t {
    full,     // no room now; progress() makes some
    done,     // locally: the source was copied, and the caller asked for nothing else
    pending,  // Receiver::take_finished() will be called with its completion, if it has one
  };
  /// `region` is where the peer's region starts, `region_bytes` how long it is.
  [[nodiscard]] virtual Started start(const Operation& operation, const Key& region,
                                      std::uint64_t region_bytes) noexcept = 0;
  /// Hands to the device the operations that were started to this peer.
  virtual void ring(Rank peer) noexcept = 0;
  /// started() is the position behind all operations that were started to this peer, fetches() the
  /// position behind the last one that asks its device for something in its memory; finished() says
  /// whether all before a position are finished. (A frame can arrive while earlier answers are
  /// still being sent, and before our own device knows that the frame's predecessors have arrived,
  /// and will not send them again.)
  [[nodiscard]] virtual std::uint64_t started(Rank peer) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t fetches(Rank peer) const noexcept = 0;
  [[nodiscard]] virtual bool finished(Rank peer, std::uint64_t up_to) const noexcept = 0;
  /// Forgets the completion, and where the results of its operations were to be written.
  virtual void forget(const Completion& completion) noexcept = 0;
  /// Called after Transport::close(): everything unfinished fails.
  virtual void give_up(Rank peer, Receiver& receiver) noexcept = 0;

 protected:
  ~DeviceOperations() = default;
};

}  // namespace dunlin::stream
