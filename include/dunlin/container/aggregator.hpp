#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/container/containers.hpp>
#include <dunlin/container/limits.hpp>

/// An Aggregator carries elements to other members in batches: it has a buffer for each target, and
/// writes it there when it is full, or when flush() asks. The target's poll() hands the elements to
/// its handler, in the order in which they were pushed. One thread uses it, the one that polls.
///
/// Invariants (docs/container.md):
///  CON-B1  The handler takes each element at most once, and those of a member in their order.
///  CON-B2  Once flush() has ended ok, the handlers have taken all that was pushed before it.
///  CON-B3  A batch of a member that has died was taken as a whole, or up to where its handler
///          stopped, or not at all; the part of it that was published before the death is taken.
namespace dunlin {

struct AggregatorOptions {
  std::string name;              // the same at all members
  std::uint32_t elements = 256;  // elements in one batch
  std::uint32_t batches = 4;     // batches that may be under way to one target
};

namespace container {

struct AggregatorSpec {
  std::string name;
  std::uint32_t element_bytes = 0;
  std::uint32_t elements = 0;
  std::uint32_t batches = 0;
};

/// The result of a handler for a batch.
struct Handled {
  std::size_t taken = 0;      // elements taken; the rest comes again
  std::uint64_t refused = 0;  // how many taken elements could not be used, for refused()
};

struct AggregatorState;

class AggregatorCore {
 public:
  /// What a handler throws reaches the caller of poll(), push() or a wait; the elements that it had
  /// then count as taken and refused.
  using Handler =
      std::function<Handled(Rank from, std::span<const std::byte> elements, std::size_t count)>;

  /// The constructor throws Error.
  AggregatorCore(Containers& containers, const AggregatorSpec& spec, Handler handler);
  ~AggregatorCore();
  AggregatorCore(const AggregatorCore&) = delete;
  AggregatorCore& operator=(const AggregatorCore&) = delete;

  /// Reserves room for the next `count` elements, or for some of them: sets `count`. They count as
  /// pushed then. Null if there is no room now.
  [[nodiscard]] std::byte* push(Rank to, std::size_t& count);
  /// Waits until there is room for that target.
  [[nodiscard]] remote::Call<remote::Status> wait_for_room(Rank to);
  /// Sends all that was pushed, and waits until it has been taken.
  [[nodiscard]] remote::Call<remote::Status> flush();
  [[nodiscard]] Containers& containers() const noexcept;
  [[nodiscard]] std::uint64_t refused() const noexcept;
  [[nodiscard]] bool lost(Rank to) const noexcept;

 private:
  std::unique_ptr<AggregatorState> state_;
};

}  // namespace container

///     dunlin::Aggregator<Edge> out(containers, {.name = "edges"},
///         [&](dunlin::Rank, const Edge& edge) { visit(edge); });   // at each member
///     for (const Edge& edge : edges) out.add(home_of(edge), edge);
///     out.flush();                                                 // all have been visited
///
/// A handler waits for nothing, and pushes to no Aggregator. What it throws reaches the caller of
/// poll(), push(), add() or flush() at its member, once; the elements that it was called with then
/// count as refused, and it is not called with them again.
template <class T>
class Aggregator {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "an aggregator carries plain bytes");

 public:
  /// Takes some of the elements, from the first on.
  using BatchHandler = std::function<container::Handled(Rank from, std::span<const T> elements)>;

  /// Calls `handler` with each element. Does not wait for the other members; throws Error.
  Aggregator(Containers& containers, const AggregatorOptions& options,
             std::function<void(Rank from, const T&)> handler)
      : Aggregator(containers, options,
                   BatchHandler([each = std::move(handler)](
                                    Rank from, std::span<const T> elements) -> container::Handled {
                     for (const T& element : elements) each(from, element);
                     return {.taken = elements.size()};
                   })) {}
  /// Calls `handler` with many elements at once; it may stop before the last one.
  Aggregator(Containers& containers, const AggregatorOptions& options, BatchHandler handler)
      : room_(options.elements),
        core_(containers,
              {.name = options.name,
               .element_bytes = sizeof(T),
               .elements = options.elements,
               .batches = options.batches},
              [this, handle = std::move(handler)](Rank from, std::span<const std::byte> bytes,
                                                  std::size_t count) {
                std::memcpy(room_.data(), bytes.data(), count * sizeof(T));
                return handle(from, std::span<const T>(room_).first(count));
              }) {}

  /// Returns whether there was room: if not, poll, and push again. Drops elements for a lost
  /// member.
  [[nodiscard]] bool push(Rank to, const T& element) {
    std::size_t one = 1;
    std::byte* const at = core_.push(to, one);
    if (at != nullptr) std::memcpy(at, &element, sizeof(T));
    return at != nullptr || core_.lost(to);
  }
  /// Pushes as many of the elements, from the first on, as there is room for; returns how many.
  /// Drops all for a lost member.
  [[nodiscard]] std::size_t push_many(Rank to, std::span<const T> elements) {
    std::size_t pushed = 0;
    while (pushed < elements.size()) {
      std::size_t some = elements.size() - pushed;
      std::byte* const at = core_.push(to, some);
      if (at == nullptr) return core_.lost(to) ? elements.size() : pushed;
      std::memcpy(at, elements.data() + pushed, some * sizeof(T));
      pushed += some;
    }
    return pushed;
  }
  /// Waits until there is room, and pushes; returns `lost` if the target is lost.
  remote::Status add(Rank to, const T& element) {
    return push(to, element) && !core_.lost(to) ? remote::Status::ok
                                                : add_many(to, std::span(&element, 1));
  }
  /// Adds all, in their order.
  remote::Status add_many(Rank to, std::span<const T> elements) {
    for (;;) {
      elements = elements.subspan(push_many(to, elements));
      if (elements.empty()) return core_.lost(to) ? remote::Status::lost : remote::Status::ok;
      const remote::Status status = core_.wait_for_room(to).wait();
      if (status != remote::Status::ok) return status;
    }
  }
  /// Sends what is in the buffers, and waits until the handlers have taken it (CON-B2). Ends `lost`
  /// if a member is lost to which something was pushed that it has not taken.
  remote::Status flush(std::uint64_t timeout_ns = remote::kForever) {
    return core_.flush().wait(timeout_ns);
  }
  /// Begins a flush() that the caller waits for later.
  [[nodiscard]] remote::Call<remote::Status> begin_flush() { return core_.flush(); }
  /// How many elements of this member handlers have refused so far.
  [[nodiscard]] std::uint64_t refused() const noexcept { return core_.refused(); }

 private:
  std::vector<T> room_;
  container::AggregatorCore core_;
};

}  // namespace dunlin
