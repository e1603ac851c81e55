#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dunlin/segment.hpp>

/// The implementation of a SegmentSpace: this process's own part of the space (space.hpp), or its
/// attachment to a daemon that has one (src/daemon).
namespace dunlin {

/// A caller's request.
struct SegmentRequest {
  SegmentCall call = SegmentCall::none;
  bool try_only = false;     // lock: `busy` instead of waiting
  bool holder_died = false;  // unlock
  bool more = false;         // get, put: another one to the same home follows
  Key key = {};
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t known_version = UINT64_MAX;
  std::uint64_t wanted_version = UINT64_MAX;  // get: of delta; put: the one that it replaces
  std::uint64_t max_age_ns = UINT64_MAX;      // get: of a copy; UINT64_MAX: as the segment says
  std::uint64_t owner = 0;                    // for locks: 0: this process; else an attached one
  // For allocate.
  Coherence coherence = Coherence::null;
  std::uint64_t stale_ns = 0;
  std::uint32_t versions = 0;
  std::uint32_t copies = 1;
  Rank place = 0;
};

[[nodiscard]] inline SegmentRequest get_of(Key key, std::span<std::byte> to, std::uint64_t offset,
                                           std::uint64_t known_version = UINT64_MAX) noexcept {
  return {.call = SegmentCall::get,
          .key = key,
          .memory = to.data(),
          .bytes = to.size(),
          .offset = offset,
          .known_version = known_version};
}
[[nodiscard]] inline SegmentRequest put_of(Key key, std::span<const std::byte> from,
                                           std::uint64_t offset) noexcept {
  return {.call = SegmentCall::put,
          .key = key,
          .memory = const_cast<std::byte*>(from.data()),
          .bytes = from.size(),
          .offset = offset};
}

class SegmentPort {
 public:
  SegmentPort() = default;
  SegmentPort(const SegmentPort&) = delete;
  SegmentPort& operator=(const SegmentPort&) = delete;
  virtual ~SegmentPort() = default;

  /// `name` is for allocate and find.
  [[nodiscard]] virtual SegmentOperation begin(const SegmentRequest& request, std::string_view name,
                                               std::uint64_t timeout_ns) = 0;

  // The calls that an implementation may end without a request.
  [[nodiscard]] virtual SegmentOperation begin_get(Key key, std::span<std::byte> to,
                                                   std::uint64_t offset) {
    return begin(get_of(key, to, offset), {}, remote::kForever);
  }
  [[nodiscard]] virtual SegmentOperation begin_get_if_changed(Key key, std::span<std::byte> to,
                                                              std::uint64_t known_version,
                                                              std::uint64_t offset) {
    return begin(get_of(key, to, offset, known_version), {}, remote::kForever);
  }
  [[nodiscard]] virtual SegmentOperation begin_put(Key key, std::span<const std::byte> from,
                                                   std::uint64_t offset) {
    return begin(put_of(key, from, offset), {}, remote::kForever);
  }
  [[nodiscard]] virtual SegmentOperation begin_lock(Key key, std::uint64_t timeout_ns) {
    return begin({.call = SegmentCall::lock, .key = key}, {}, timeout_ns);
  }
  [[nodiscard]] virtual SegmentOperation begin_unlock(Key key) {
    return begin({.call = SegmentCall::unlock, .key = key}, {}, remote::kForever);
  }
  /// Ends those of the gets that can end at once; the others are `under_way`. Whether all are `ok`.
  [[nodiscard]] virtual bool get_many_at_once(std::span<SegmentRead> reads) noexcept {
    for (SegmentRead& one : reads) one.status = remote::Status::under_way;
    return reads.empty();
  }

  [[nodiscard]] virtual remote::Progress& its_progress() const noexcept = 0;
  [[nodiscard]] virtual const std::string& space_name() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t members() const noexcept = 0;
  /// The member that is meant; kInTurn and kHere stay if another decides.
  [[nodiscard]] virtual Rank place_of(Placement placement) noexcept = 0;
  /// The member in a sentence.
  [[nodiscard]] virtual std::string text_of(Rank rank) const = 0;
  [[nodiscard]] virtual remote::PoolUse use() const noexcept = 0;
  [[nodiscard]] virtual std::vector<Key> lost() const = 0;
  [[nodiscard]] virtual const std::string& why_refused() const noexcept = 0;
  /// Puts into mapped memory wake no sleeping member from now on: none waits for a segment's bytes.
  virtual void leave_members_asleep() noexcept {}

  [[nodiscard]] static SegmentPort& of(SegmentSpace& space) noexcept { return *space.port_; }
  [[nodiscard]] static std::unique_ptr<SegmentSpace> space_over(std::unique_ptr<SegmentPort> port) {
    return std::unique_ptr<SegmentSpace>(new SegmentSpace(std::move(port)));
  }

  /// The outcome of a call that has not ended.
  [[nodiscard]] Outcome begun(const SegmentRequest& request) const noexcept {
    return {.call = request.call,
            .key = request.key,
            .space = this,
            .offset = request.call == SegmentCall::allocate ? request.place : request.offset,
            .bytes = request.bytes};
  }
};

/// Why there can be no such segment; empty if there can.
[[nodiscard]] std::string fault_of(const SegmentSpec& spec);

[[nodiscard]] inline SegmentRequest request_for(const SegmentSpec& spec, Rank place) noexcept {
  return {.call = SegmentCall::allocate,
          .bytes = spec.bytes,
          .coherence = spec.coherence,
          .stale_ns = spec.stale_ns,
          .versions = spec.versions,
          .copies = spec.copies,
          .place = place};
}

}  // namespace dunlin
