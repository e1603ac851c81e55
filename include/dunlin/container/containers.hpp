#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include <dunlin/container/cost.hpp>
#include <dunlin/container/limits.hpp>
#include <dunlin/container/promise.hpp>
#include <dunlin/remote.hpp>

/// A Containers holds the objects that the containers of one process share: progress, the channel
/// of their messages, and the cost model. One thread uses it, the one that polls its fabric.
///
///     dunlin::Containers containers(*fabric);
///     dunlin::HashMap<int, double> prices(containers, {.name = "prices", .slots = 1000});
namespace dunlin {

struct ContainersOptions {
  std::uint32_t channel = kContainerChannel;  // must differ if a fabric has several Containers
  ComponentCosts costs = {};                  // the fabric's costs; 0: not measured, see cost.hpp
};

namespace container {
struct Hub;
}  // namespace container

template <class Signature>
class Function;
template <class R>
class Returned;

class Containers {
 public:
  /// The containers stop when any member fails. Does not wait for the other members. Throws Error.
  explicit Containers(Fabric& fabric, ContainersOptions options = {});
  /// The containers go on as the membership of `progress` does. The progress must outlive this
  /// object, which outlives its containers.
  explicit Containers(remote::Progress& progress, ContainersOptions options = {});
  ~Containers();
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  /// Calls the function at that member, whose poll() runs it (function.hpp). Throws Error if there
  /// is no such member.
  template <class R, class... A>
  [[nodiscard]] remote::Call<Returned<R>> at(Rank rank, Function<R(A...)>& function,
                                             const std::type_identity_t<A>&... arguments);

  std::size_t poll() { return progress().poll(); }
  [[nodiscard]] Waits waits() const { return progress().waits(); }
  [[nodiscard]] remote::Progress& progress() const noexcept;
  [[nodiscard]] Fabric& fabric() const noexcept { return progress().fabric(); }
  [[nodiscard]] const ComponentCosts& costs() const noexcept;
  void set_costs(const ComponentCosts& costs) noexcept;
  /// A sentence about the last two calls on a `checked` container that contradicted each other;
  /// empty: there were none.
  [[nodiscard]] const std::string& broken_promise() const noexcept;
  /// A sentence that names the last member whose part of a container has other options than ours,
  /// and what differs; empty: there is none. Calls on that part end with `refused`.
  [[nodiscard]] const std::string& why_refused() const noexcept;

  // --- for containers ----------------------------------------------------------------------------
  [[nodiscard]] container::Hub& hub() const noexcept { return *hub_; }

 private:
  std::unique_ptr<container::Hub> hub_;
};

}  // namespace dunlin
