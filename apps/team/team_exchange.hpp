#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <dunlin/fabric.hpp>

/// How the members of a team wait for each other: on a page that all see, or between hosts.
namespace dunlin::app {

inline constexpr std::size_t kExchangedBytes = 256;

/// Each member has one.
class TeamExchange {
 public:
  virtual ~TeamExchange() = default;
  /// We are here. `word`, of less than kExchangedBytes, is for all; an empty one leaves the former.
  virtual void arrive(std::string_view word) = 0;
  /// Asked again and again: whether all have arrived as often as we. Throws Error if one never
  /// will.
  [[nodiscard]] virtual bool all_here() = 0;
  /// Requires that all are here; valid until we arrive again.
  [[nodiscard]] virtual std::string word_of(std::uint32_t rank) const = 0;
};

/// Makes an exchange on a table; its fabric has all members and nothing else to do.
[[nodiscard]] std::unique_ptr<TeamExchange> exchange_on(std::unique_ptr<Fabric> fabric);

}  // namespace dunlin::app
