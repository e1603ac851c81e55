#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "fabric/stream/transport.hpp"
#include "fabric/tcp/prefix.hpp"

/// Puts together the frames of one peer from the pieces that the kernel hands out.
///  TCP-I1  A frame is handed over when it and all bytes behind it are here, and frames are handed
///      over in their order.
///  TCP-I2  The bytes behind a frame are received straight into their places. Bytes that came with
///      the frame are copied there.
///  TCP-I3  Nothing is written into memory that was released: its places are forgotten then, and
///      their bytes are thrown away.
namespace dunlin::tcp {

/// Memory in which all connections of a fabric receive what has no place of its own; one uses it at
/// a time.
class Scratch {
 public:
  /// The most bytes from one call: as much as is worth a call, and stays in the cache.
  static constexpr std::size_t kBytes = std::size_t{1} << 18;
  [[nodiscard]] std::byte* room() noexcept { return room_.get(); }
  /// Memory for bytes that are thrown away, kMaxBehindBytes long.
  [[nodiscard]] std::byte* bin();

 private:
  std::unique_ptr<std::byte[]> room_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  std::unique_ptr<std::byte[]> bin_;
};

class Incoming {
 public:
  /// The memory for the next call: at least one piece. The last piece is in the scratch memory.
  [[nodiscard]] std::span<const iovec> wanted(Scratch& scratch);
  /// Says that the call has filled the first `bytes` of wanted(). Hands over what is whole. Returns
  /// false if the peer breaks the protocol, or the receiver has closed this connection.
  [[nodiscard]] bool take(std::size_t bytes, Rank from, stream::Receiver& receiver,
                          Scratch& scratch);
  void forget_places(std::span<const std::byte> memory) noexcept;
  void close() noexcept;

 private:
  enum class Part { prefix, frame, behind };

  [[nodiscard]] std::size_t part_bytes() const noexcept;
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  void own_pieces(Scratch& scratch);
  void count(std::size_t bytes) noexcept;
  void copy_from(std::span<const std::byte>& content);
  [[nodiscard]] bool finish_part(Rank from, stream::Receiver& receiver);
  [[nodiscard]] bool finish_frame(std::span<const std::byte> frame, Rank from,
                                  stream::Receiver& receiver);
  [[nodiscard]] bool hand_over(std::span<const std::byte> frame, Rank from,
                               stream::Receiver& receiver);
  void keep_frames();

  Part part_ = Part::prefix;  // the part that is awaited
  std::size_t have_ = 0;      // how much of it has come
  Prefix prefix_;
  std::unique_ptr<std::byte[]> frame_;  // kMaxFrameBytes, once a frame comes in pieces
  std::vector<stream::Place> places_;   // for the bytes behind the frame, and its padding
  std::size_t place_ = 0;               // the first that is not full,
  std::size_t place_have_ = 0;          // and how many bytes it has
  std::array<iovec, kMaxPieces> pieces_;
  std::size_t piece_count_ = 0;
  std::size_t own_bytes_ = 0;  // bytes of the pieces that are not scratch memory
  bool closed_ = false;
};

}  // namespace dunlin::tcp
