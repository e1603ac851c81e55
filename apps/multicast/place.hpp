#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "cluster/fabric_options.hpp"

namespace CLI {
class App;
}

/// Where a member of `dunlin multicast` and `dunlin topic` finds the others.
namespace dunlin::app::cast {

inline constexpr std::uint32_t kJoinTimeOutMs = 60'000;  // users start the founders by hand

struct PlaceOptions {
  FabricOptions fabric = {};
  std::string group = {};
  std::string name = {};                        // this member's name
  std::vector<std::string> members = {};        // the founders
  bool join = false;                            // true: joins the founders' group
  std::string listen = {};                      // networks: where this member is found
  std::vector<std::string> contacts = {};       // to join: where other members may be
  std::uint32_t silence_ms = kServerSilenceMs;  // unless the user has said
};

/// The options of a command that is a member of a group. `place` has the defaults.
void add_place_options(CLI::App& command, PlaceOptions& place);

/// Throws BadInput that names the option, unless these can be members.
void check_member_names(const char* option, const std::vector<std::string>& names);

class Place {
 public:
  /// Throws BadInput that names the option.
  explicit Place(PlaceOptions options);

  /// A fabric of the founders, which is formed when all have come. Throws Error.
  [[nodiscard]] std::unique_ptr<PendingJoin> begin_founding() const;
  /// The rendezvous for members that come later. Throws Error.
  [[nodiscard]] std::shared_ptr<Rendezvous> rendezvous() const;
  /// How long to wait for others, which is this unless the user has said.
  [[nodiscard]] std::uint32_t timeout_ms() const;

  [[nodiscard]] const std::string& group() const noexcept { return options_.group; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] bool joins() const noexcept { return options_.join; }
  /// "'b', 'c'".
  [[nodiscard]] std::string other_founders() const;

 private:
  void check_names() const;
  void check_addresses();
  [[nodiscard]] JoinOptions join_options() const;

  PlaceOptions options_;
  std::string secret_ = {};
};

}  // namespace dunlin::app::cast
