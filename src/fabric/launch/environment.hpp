#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dunlin::launch {

/// The environment variables of a process, and the name of its host; a test makes its own
/// environment.
class Environment {
 public:
  /// The environment of this process. What it does not say may be in the file that DUNLIN_CONFIG
  /// names: lines "name = value", with the names of join_options(). Throws Error for a file that
  /// cannot be read or makes no sense.
  Environment();
  Environment(std::map<std::string, std::string> variables, std::string host_name)
      : made_up_(true), variables_(std::move(variables)), host_name_(std::move(host_name)) {}

  /// Whether this is the environment of this process, and no made-up one.
  [[nodiscard]] bool is_own() const noexcept { return !made_up_; }
  [[nodiscard]] bool has(const std::string& name) const { return find(name).has_value(); }
  /// The variable's text; none if it is not set. Throws Error if it is empty: then the program that
  /// should have set it did not.
  [[nodiscard]] std::optional<std::string> text(const std::string& name) const;
  /// The variable's number; none if it is not set. Throws Error if it is not a number from `min` to
  /// `max`.
  [[nodiscard]] std::optional<std::uint32_t> number(const std::string& name, std::uint32_t min,
                                                    std::uint32_t max) const;
  [[nodiscard]] std::string host_name() const;

 private:
  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;

  bool made_up_ = false;
  std::map<std::string, std::string> variables_;  // all of a made-up one; else those of the file
  std::string host_name_;
};

/// The variable's state for messages: "SLURM_PROCID is '7'", or "SLURM_PROCID is not set".
[[nodiscard]] std::string state_of(const Environment& environment, const std::string& name);

}  // namespace dunlin::launch
