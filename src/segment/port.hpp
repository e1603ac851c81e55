#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/segment.hpp>

/// The implementation of a SegmentSpace: this process's own part of the space (space.hpp), or its
/// attachment to a daemon that has one (src/daemon). Operations are the same objects on both.
namespace dunlin {

class SegmentPort {
 public:
  SegmentPort() = default;
  SegmentPort(const SegmentPort&) = delete;
  SegmentPort& operator=(const SegmentPort&) = delete;
  virtual ~SegmentPort() = default;

  /// As InFlight::advance and clean_up.
  virtual void advance(SegmentOperation& op) noexcept = 0;
  virtual void clean_up(SegmentOperation& op) noexcept = 0;
  /// Whether it has begun a get or put, and perhaps ended it, by a shorter way than the steps.
  [[nodiscard]] virtual bool begin_at_once(SegmentOperation&,
                                           const SegmentOperation::Request&) noexcept {
    return false;
  }

  /// A get or put that begins while this is on is followed by another one to the same home.
  virtual void gather(bool) noexcept {}

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
};

/// Why there can be no such segment; empty if there can.
[[nodiscard]] std::string fault_of(const SegmentSpec& spec);

/// The parts of operations that the daemon, and an attachment to it, use beyond their interface.
struct SegmentAccess {
  using Kind = SegmentOperation::Kind;
  using Request = SegmentOperation::Request;

  [[nodiscard]] static Request request_for(const SegmentSpec& spec, Rank place) noexcept {
    return {.kind = Kind::allocate,
            .bytes = spec.bytes,
            .coherence = spec.coherence,
            .stale_ns = spec.stale_ns,
            .versions = spec.versions,
            .copies = spec.copies,
            .place = place};
  }
  static void start(SegmentOperation& op, const Request& request, std::string name = {}) {
    op.abandon();
    op.name_ = std::move(name);
    op.start_as(request);
  }
  [[nodiscard]] static const Request& request(const SegmentOperation& op) noexcept {
    return op.request_;
  }
  [[nodiscard]] static const std::string& name(const SegmentOperation& op) noexcept {
    return op.name_;
  }
  [[nodiscard]] static Completion& completion(SegmentOperation& op) noexcept {
    return op.completion_;
  }
  [[nodiscard]] static Outcome& outcome(SegmentOperation& op) noexcept { return op.outcome_; }
  /// A number that the port gives an operation; 0 when it starts.
  [[nodiscard]] static std::uint64_t& number(SegmentOperation& op) noexcept { return op.id_; }
  [[nodiscard]] static remote::Status& answer(SegmentOperation& op) noexcept { return op.answer_; }
  static void end(SegmentOperation& op, remote::Status status) noexcept { op.end(status); }

  [[nodiscard]] static std::unique_ptr<SegmentSpace> space_over(std::unique_ptr<SegmentPort> port) {
    return std::unique_ptr<SegmentSpace>(new SegmentSpace(std::move(port)));
  }
  [[nodiscard]] static SegmentPort& port_of(SegmentSpace& space) noexcept { return *space.port_; }
};

}  // namespace dunlin
