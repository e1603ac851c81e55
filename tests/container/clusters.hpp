#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>

#include "support/cluster.hpp"

/// Members that share containers, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

using ContainerCluster = Cluster<Containers, ContainersOptions>;
using SimContainers = SimCluster<ContainerCluster>;
using RealContainers = RealCluster<ContainerCluster>;
using ContainerBackend = ClusterBackend<ContainerCluster>;

inline std::vector<ContainerBackend> container_backends() {
  return cluster_backends<ContainerCluster>();
}

/// Each fabric, with each style.
struct ContainerCase {
  ContainerBackend backend;
  Style style;
  friend void PrintTo(const ContainerCase& one, std::ostream* out) {
    *out << one.backend.name << " " << name_of(one.style);
  }
};

inline std::vector<ContainerCase> container_cases() {
  std::vector<ContainerCase> all;
  for (const ContainerBackend& backend : container_backends())
    for (const Style style : {Style::one_sided, Style::message, Style::automatic})
      all.push_back({backend, style});
  return all;
}

inline std::string name_of_case(const testing::TestParamInfo<ContainerCase>& info) {
  static const std::vector<std::string> styles{"Automatic", "OneSided", "Message"};
  return info.param.backend.name + styles.at(static_cast<std::size_t>(info.param.style));
}

struct OnContainers : testing::TestWithParam<ContainerCase> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam().backend); }
  void start(std::uint32_t members) { cluster = GetParam().backend.start(members, {}); }
  /// A container at each member.
  template <class Made, class Options>
  std::vector<std::unique_ptr<Made>> make(Options options) {
    std::vector<std::unique_ptr<Made>> all;
    if constexpr (requires { options.style; }) options.style = GetParam().style;
    for (Rank rank = 0; rank < cluster->size(); ++rank)
      all.push_back(std::make_unique<Made>((*cluster)[rank], options));
    return all;
  }
  /// Runs a call to its end, and gives what `what` makes of it. A call cannot be moved to where it
  /// is kept.
  template <class Begin, class What>
  auto end(const Begin& begin, const What& what) {
    auto&& operation = begin();
    cluster->end_of(operation);
    return what(operation);
  }
  std::unique_ptr<ContainerCluster> cluster;
};

}  // namespace dunlin::test
