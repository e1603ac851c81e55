#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "bench/harness/result.hpp"

/// The common part of the figures of views that end.
namespace dunlin::bench {

/// A member that sends the next message when it has delivered its last one.
class Speaker {
 public:
  [[nodiscard]] static GroupOptions options(std::shared_ptr<Rendezvous> place = nullptr) {
    return {.subgroups = {{.name = "all"}}, .rendezvous = std::move(place)};
  }

  explicit Speaker(std::unique_ptr<dunlin::Group> group);
  explicit Speaker(Fabric& fabric, std::shared_ptr<Rendezvous> place = nullptr)
      : Speaker(std::make_unique<dunlin::Group>(fabric, options(std::move(place)))) {}

  std::size_t poll();
  [[nodiscard]] dunlin::Group& group() noexcept { return *group_; }
  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }

  std::function<void(std::uint64_t view)> on_delivery;

 private:
  std::unique_ptr<dunlin::Group> group_;
  Multicast multicast_;
  bool own_ = true;
  std::uint64_t delivered_ = 0;
};

/// Adds the median of these times, and as a figure of its own the 99th percentile, which should be
/// at most `most`, if that is not 0.
void report(std::vector<Result>& results, const Result& of, std::vector<double> values,
            double most);

}  // namespace dunlin::bench
