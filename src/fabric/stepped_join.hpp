#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <poll.h>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/system.hpp"

/// What all steps that form a fabric have in common: a caller that polls in a busy loop pays only
/// for a look whether anything has happened, and a caller that waits has one descriptor for all
/// events.
namespace dunlin {

/// The events that a step waits for, for a caller that must not block.
struct Awaited {
  std::vector<pollfd> descriptors = {};
  std::uint64_t until_ns = UINT64_MAX;

  void add(const Descriptor& descriptor, int events = POLLIN) {
    descriptors.push_back({descriptor.get(), static_cast<short>(events), 0});
  }
  void by(std::uint64_t time_ns) noexcept {
    if (time_ns < until_ns) until_ns = time_ns;
  }
  /// Whether one of the events has come; sets what poll(2) sets.
  [[nodiscard]] bool is_here() noexcept;
  /// Waits until one of the events has come.
  void wait() noexcept;
};

/// One descriptor, which stays the same while the events behind it change.
class AwaitedDescriptor {
 public:
  AwaitedDescriptor();
  void set(const Awaited& awaited);
  [[nodiscard]] int get() const noexcept { return outer_.get(); }

 private:
  Descriptor outer_;
  Descriptor timer_;
  Descriptor inner_;  // made anew each time, so that no old event stays
};

template <class Interface>
class Stepped : public Interface {
 public:
  [[nodiscard]] std::unique_ptr<Fabric> poll() final;
  [[nodiscard]] int wait_descriptor() const noexcept final;
  /// Polls and waits until the fabric is formed, for a caller that has nothing else to do.
  [[nodiscard]] std::unique_ptr<Fabric> run();

 protected:
  /// Says that the next poll() has something to do, whatever was awaited.
  void begin_anew() noexcept { awaited_ = {.until_ns = 0}; }

 private:
  /// Does what poll() does, when there is something to do.
  [[nodiscard]] virtual std::unique_ptr<Fabric> step() = 0;
  /// What the next step waits for, after a step that has not ended the join.
  [[nodiscard]] virtual Awaited awaited() = 0;

  Awaited awaited_{.until_ns = 0};
  mutable std::unique_ptr<AwaitedDescriptor> descriptor_;
  bool over_ = false;
};
extern template class Stepped<PendingJoin>;
extern template class Stepped<PendingEntry>;

using SteppedJoin = Stepped<PendingJoin>;
using SteppedEntry = Stepped<PendingEntry>;

}  // namespace dunlin
