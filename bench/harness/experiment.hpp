#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/harness/result.hpp"
#include "cluster/fabric_options.hpp"

namespace dunlin::app {
class Watch;
}

/// An Experiment measures one figure, at one or several settings of its parameters.
namespace dunlin::bench {

/// How hard to measure; from the command line.
struct Effort {
  std::uint32_t rounds = 11;
  bool quick = false;  // a fraction of the work: to see that everything runs, not to quote
  std::chrono::milliseconds timeout{120'000};
  std::uint32_t members = 2;        // of a group, where a figure can have more
  std::string profile = {};         // of simulated networks; empty: each figure's own
  app::FabricOptions network = {};  // of real ones: provider, device, address, hosts
  app::Watch* watch = nullptr;      // of the other hosts, once all have come

  /// The full amount of something, or a hundredth of it.
  [[nodiscard]] std::uint32_t scaled(std::uint32_t full) const noexcept {
    return quick ? std::max(full / 100, 1U) : full;
  }

  /// A round of so many batches; a quick one has a hundredth of them, a tenth as long each. Where
  /// other work shares the cores, every step of a ping-pong may cost both sides a time slice.
  [[nodiscard]] Batches plan(std::uint32_t batches, std::uint32_t per_batch) const noexcept {
    return {.batches = scaled(batches),
            .per_batch = quick ? std::max(per_batch / 10, 1U) : per_batch};
  }
};

struct Experiment {
  std::string name;            // "detection"; several results share it
  std::string title;           // a line for people: what is measured, and how
  std::string fabric;          // "shm", "tcp", "ofi", "verbs", "sim" or "none"
  std::string x = {};          // the parameter to plot along; empty: bars
  bool between_hosts = false;  // can be
  bool only_by_name = false;   // measured if it is named, and not among all: it takes much
  std::function<std::vector<Result>(const Effort&)> run;
};

struct Finding {
  const Experiment* experiment;
  std::vector<Result> results;
};

// --- lists ---------------------------------------------------------------------------------------

template <class T>
void append(std::vector<T>& all, std::type_identity_t<T> one) {
  all.push_back(std::move(one));
}

template <class T>
void append(std::vector<T>& all, std::type_identity_t<std::vector<T>> more) {
  std::ranges::move(more, std::back_inserter(all));
}

/// One list of single ones and of lists.
template <class T, class... Parts>
[[nodiscard]] std::vector<T> joined(Parts... parts) {
  std::vector<T> all;
  (append(all, std::move(parts)), ...);
  return all;
}

struct NamedFigure {
  const char* name;
  const char* title;
  const char* x;  // empty: bars
  std::function<std::vector<Result>(const Effort&)> run;
};

/// Experiments on one fabric.
[[nodiscard]] inline std::vector<Experiment> experiments_on(
    const std::string& fabric, std::initializer_list<NamedFigure> figures) {
  std::vector<Experiment> all;
  for (const NamedFigure& each : figures)
    all.push_back(
        {.name = each.name, .title = each.title, .fabric = fabric, .x = each.x, .run = each.run});
  return all;
}

/// The `run` of an experiment that measures each of some settings. `measure(effort, setting)` or
/// `measure(network, effort, setting)` returns a result, or several.
template <class Setting, class Measure>
class ForSettings {
 public:
  ForSettings(std::vector<Setting> settings, Measure measure, std::size_t most_when_quick)
      : settings_(std::move(settings)), measure_(measure), most_when_quick_(most_when_quick) {}

  [[nodiscard]] std::vector<Result> operator()(const Effort& effort) const {
    return all(effort, [&](const Setting& setting) { return measure_(effort, setting); });
  }
  template <class Network>
  [[nodiscard]] std::vector<Result> operator()(const Network& network, const Effort& effort) const {
    return all(effort, [&](const Setting& setting) { return measure_(network, effort, setting); });
  }

 private:
  template <class One>
  [[nodiscard]] std::vector<Result> all(const Effort& effort, const One& one) const {
    std::vector<Result> results;
    const std::size_t most = effort.quick ? most_when_quick_ : settings_.size();
    for (std::size_t i = 0; i < std::min(most, settings_.size()); ++i)
      append(results, one(settings_[i]));
    return results;
  }

  std::vector<Setting> settings_;
  Measure measure_;
  std::size_t most_when_quick_;  // so many of the settings are measured in a quick run
};

template <class Settings, class Measure>
[[nodiscard]] auto for_settings(const Settings& settings, Measure measure,
                                std::size_t most_when_quick = SIZE_MAX) {
  using Setting = typename Settings::value_type;
  return ForSettings<Setting, Measure>(std::vector<Setting>(settings.begin(), settings.end()),
                                       measure, most_when_quick);
}

template <class Setting, class Measure>
[[nodiscard]] auto for_settings(std::initializer_list<Setting> settings, Measure measure,
                                std::size_t most_when_quick = SIZE_MAX) {
  return ForSettings<Setting, Measure>(settings, measure, most_when_quick);
}

}  // namespace dunlin::bench
