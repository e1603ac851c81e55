#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <infiniband/verbs.h>

#include <dunlin/fabric.hpp>

#include "ring.hpp"

/// The requests under way on one queue pair, in order: work requests that wait for the doorbell,
/// and a record of each until it is known to be complete.
///  VRB-Q1  Requests complete in order; so one that is signalled tells of all before it.
///  VRB-Q2  There is always a signalled one among any quarter of the queue, and of the ring of
///       VRB-Q3.
///  VRB-Q3  Copies of sources and results lie in a ring of registered memory, in the order of their
///      records, and are freed with these.
namespace dunlin::verbs {

inline constexpr std::size_t kStagingBytes = std::size_t{64} << 10;
/// The most bytes of staging memory that one operation may take.
inline constexpr std::size_t kMaxStagedBytes = kStagingBytes / 4;

struct Record {
  enum class Kind : std::uint8_t { silent, frame, credit, done, result, sandwich };
  Kind kind = Kind::silent;
  std::uint32_t staged_bytes = 0;  // in the ring, with skipped bytes
  std::uint32_t at = 0;            // where the result's words begin in the ring
  std::uint32_t lead = 0;          // bytes of the first word that are not wanted
  std::uint32_t bytes = 0;         // length of the result
  std::uint64_t offset = 0;        // the first word's, in the peer's region
  std::byte* to = nullptr;         // where the result goes; a frame's buffer
  Completion* completion = nullptr;
  /// Forgets the caller's completion, and where the result goes.
  void forget() noexcept {
    if (kind == Kind::frame) return;
    to = nullptr;
    completion = nullptr;
  }
};

class SendQueue {
 public:
  /// `staging` is kStagingBytes of memory with this key.
  void open(ibv_qp* pair, std::uint32_t slots, std::span<std::byte> staging, std::uint32_t key);
  /// Stops: nothing reaches the device any more.
  void close() noexcept { pair_ = nullptr; }

  [[nodiscard]] std::uint32_t room() const noexcept {
    return slots_ - static_cast<std::uint32_t>(records_.pushed() - records_.popped());
  }
  /// added() is the position behind the last record; the next two are the position behind the last
  /// request that fetches, and how many records are retired.
  [[nodiscard]] std::uint64_t added() const noexcept { return records_.pushed(); }
  [[nodiscard]] std::uint64_t fetches() const noexcept { return fetches_; }
  [[nodiscard]] std::uint64_t retired() const noexcept { return records_.popped(); }

  struct Staged {
    std::byte* memory = nullptr;  // on a line; null: there is no room
    std::uint32_t at = 0;
    std::uint32_t bytes = 0;  // how many bytes to free
  };
  /// Reserves memory for up to kMaxStagedBytes. It belongs to the record that is added next, and
  /// names its bytes.
  [[nodiscard]] Staged stage(std::size_t bytes) noexcept;
  [[nodiscard]] std::byte* staged(std::uint32_t at) const noexcept { return staging_.data() + at; }
  /// The word into which anything may be fetched: the last one, which stage() never uses.
  [[nodiscard]] std::byte* scrap() const noexcept { return staging_.data() + kRingBytes; }
  [[nodiscard]] std::uint32_t staging_key() const noexcept { return staging_key_; }

  /// Adds a request. Requires room(). `tag` is what its completion will carry above the lowest 32
  /// bits. For an operation on memory, the caller says where that is (request.wr).
  ibv_send_wr& add(ibv_wr_opcode opcode, const ibv_sge& piece, const Record& record,
                   std::uint64_t tag, unsigned flags = 0) noexcept;
  /// Rings the doorbell for the requests added. Returns 0, or an error number.
  [[nodiscard]] int ring() noexcept;

  /// Retires all records up to the one whose request's completion had this number, the oldest
  /// first.
  template <class Take>
  void retire(std::uint32_t number, const Take& take) {
    auto count = number - static_cast<std::uint32_t>(records_.popped()) + 1;
    if (count > slots_) return;  // a later completion, taken first, has retired it
    for (; count > 0 && !records_.empty(); --count) {
      take(records_.front());
      staging_tail_ += records_.front().staged_bytes;
      records_.pop();
    }
  }
  /// Visits all records that are unfinished.
  template <class Look>
  void each(const Look& look) {
    for (std::uint64_t i = records_.popped(); i < records_.pushed(); ++i) look(records_.at(i));
  }
  void clear() noexcept;

 private:
  static constexpr std::size_t kMaxChain = 32;
  static constexpr std::size_t kRingBytes = kStagingBytes - kCacheLineBytes;

  ibv_qp* pair_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t unsignalled_ = 0;
  std::size_t unsignalled_bytes_ = 0;
  Ring<Record> records_;
  std::array<ibv_send_wr, kMaxChain> chain_{};
  std::array<ibv_sge, kMaxChain> pieces_{};
  std::size_t chained_ = 0;
  std::uint64_t fetches_ = 0;
  int error_ = 0;
  std::span<std::byte> staging_;
  std::uint32_t staging_key_ = 0;
  std::uint64_t staging_head_ = 0;
  std::uint64_t staging_tail_ = 0;
};

}  // namespace dunlin::verbs
