#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <poll.h>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/system.hpp"

/// The common part of all steps that form a fabric: a caller that polls in a busy loop pays only
/// for a look whether anything has happened, and a caller that waits has one descriptor for all
/// events.
namespace dunlin {

/// The events for a caller that must not block.
struct Awaited {
  std::vector<pollfd> descriptors = {};
  std::uint64_t until_ns = UINT64_MAX;

  void add(const Descriptor& descriptor, int events = POLLIN) {
    descriptors.push_back({descriptor.get(), static_cast<short>(events), 0});
  }
  void by(std::uint64_t time_ns) noexcept {
    if (time_ns < until_ns) until_ns = time_ns;
  }
  /// Whether it has come; sets what poll(2) does.
  [[nodiscard]] bool is_here() noexcept;
  /// Waits until it has.
  void wait() noexcept;
};

/// One descriptor, always the same, while the events behind it change.
class AwaitedDescriptor {
 public:
  AwaitedDescriptor();
  void set(const Awaited& awaited);
  [[nodiscard]] int get() const noexcept { return outer_.get(); }

 private:
  Descriptor outer_;
  Descriptor timer_;
  Descriptor inner_;  // made anew each time, so that nothing of the last time stays
};

template <class Interface>
class Stepped : public Interface {
 public:
  [[nodiscard]] std::unique_ptr<Fabric> poll() final;
  [[nodiscard]] int wait_descriptor() const noexcept final;
  /// For a caller that has nothing else to do: polls, and waits, until it is formed.
  [[nodiscard]] std::unique_ptr<Fabric> run();

 protected:
  /// The next poll() has something to do, whatever was awaited.
  void begin_anew() noexcept { awaited_ = {.until_ns = 0}; }

 private:
  /// As poll(), and has something to do.
  [[nodiscard]] virtual std::unique_ptr<Fabric> step() = 0;
  /// For what, after a step that has not ended it.
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
