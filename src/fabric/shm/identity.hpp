#pragma once

#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/shm/system.hpp"

namespace dunlin::shm {

/// The identity of this member, as far as the others need it.
struct Identity {
  std::string group;
  std::vector<std::string> names;  // by rank; empty strings if members are counted
  std::uint64_t names_hash = 0;    // 0: members are counted
  Rank rank = 0;
  std::uint64_t incarnation = 0;  // random, never 0
  std::uint32_t silence_timeout_ms = 0;
  bool has_barriers = false;
  std::string fabric = "shm";  // the backend's name, for observers

  [[nodiscard]] std::uint32_t members() const noexcept {
    return static_cast<std::uint32_t>(names.size());
  }
  /// Names a member for messages: "rank 2", or "'c' (rank 2)".
  [[nodiscard]] std::string who(Rank of) const;
};

/// Checks the options and makes an identity of them; its rank is the requested rank, if any.
[[nodiscard]] Identity identity_from(const JoinOptions& options);

/// The identity of a newcomer.
[[nodiscard]] Identity identity_of(const Entry& entry, std::vector<std::string> names,
                                   std::uint32_t silence_timeout_ms);

/// The ranks that the options allow, best first.
[[nodiscard]] std::vector<Rank> wanted_ranks(const Identity& self);

}  // namespace dunlin::shm
