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

/// By which the device of a peer finds opened memory.
struct Key {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

class Receiver;

class DeviceOperations {
 public:
  struct Abilities {
    /// Writes are placed in the order posted, each line at once or in ascending order of its words:
    /// so they are signals. Without it, only bytes that no process polls are written (put).
    bool ordered_writes = false;
    /// Parts of words, and unaligned words, are placed and fetched at once, too.
    bool partial_words = false;
    /// Reads are as FAB-F2 wants them.
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
    done,     // locally: the source was copied, and the caller asked for no more
    pending,  // Receiver::take_finished() will be called with its completion, if it has one
  };
  /// `region` is where the peer's region starts, `region_bytes` how long it is.
  [[nodiscard]] virtual Started start(const Operation& operation, const Key& region,
                                      std::uint64_t region_bytes) noexcept = 0;
  /// Hands to the device what was started to this peer.
  virtual void ring(Rank peer) noexcept = 0;
  /// The places behind all that was started to this peer, and behind the last of it that asks its
  /// device for something that is in its memory; and whether all before a place is finished. (A
  /// frame can be heard while earlier answers are still being sent, and before our own device knows
  /// that it has arrived, and will not send again what was posted before it.)
  [[nodiscard]] virtual std::uint64_t started(Rank peer) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t fetches(Rank peer) const noexcept = 0;
  [[nodiscard]] virtual bool finished(Rank peer, std::uint64_t up_to) const noexcept = 0;
  /// Forgets the callers, and where their results were to go.
  virtual void forget(const Completion& completion) noexcept = 0;
  /// After Transport::close(): everything unfinished fails.
  virtual void give_up(Rank peer, Receiver& receiver) noexcept = 0;

 protected:
  ~DeviceOperations() = default;
};

}  // namespace dunlin::stream
