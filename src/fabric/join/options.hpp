#pragma once

#include <span>
#include <string>
#include <string_view>

#include <dunlin/join.hpp>

/// The one table of the options of a join. From it come the variables of the environment, the
/// options of the commands, and the check of what a network honours. The table of docs/deploy.md is
/// written by hand; a test (tests/fabric/join_options_test.cpp) asks that it has a row for each
/// option.
namespace dunlin {

struct JoinOption {
  enum class Needs : std::uint8_t { nothing, hosts, encryption, providers, one_host };
  /// Whether all members must give the same value, and who notices: those that meet because of it,
  /// or the rendezvous, which compares their terms().
  enum class Agreed : std::uint8_t { no, to_meet, by_terms };

  std::string_view name;   // the field of JoinOptions; its variable is DUNLIN_ and this
  std::string_view flag;   // of the commands; empty: they have another way to say it
  std::string_view value;  // what a value looks like; empty: the flag has none
  Needs needs;             // what a network must have to honour it
  Agreed agreed;
  std::string_view about;  // a sentence without its end, for a help text
  /// The value as a text; empty: it is left open.
  std::string (*text)(const JoinOptions& options);
  /// Throws Error, a part of a sentence, if the text makes no sense.
  void (*take)(JoinOptions& options, const std::string& text);
  /// Why a command refuses the option in the simulator, although each network honours it; empty: it
  /// does not, or `needs` says why.
  std::string_view not_in_simulator = {};

  [[nodiscard]] std::string variable() const;
  [[nodiscard]] bool given(const JoinOptions& options) const { return !text(options).empty(); }
};

[[nodiscard]] std::span<const JoinOption> join_options() noexcept;

/// Whether the network honours options that need this.
[[nodiscard]] bool honours(const Network& network, JoinOption::Needs needs) noexcept;
/// The first option that is given and that the network does not honour; null: there is none.
[[nodiscard]] const JoinOption* unfit(const JoinOptions& options, const Network& network);
/// What networks that do not honour such options lack: "it does not encrypt".
[[nodiscard]] std::string_view lack_of(JoinOption::Needs needs) noexcept;
/// The networks that honour them: "tcp or auto".
[[nodiscard]] std::string networks_with(JoinOption::Needs needs);
/// What members compare when they meet: "network tcp, encrypt 1".
[[nodiscard]] std::string terms(const JoinOptions& options);

}  // namespace dunlin
