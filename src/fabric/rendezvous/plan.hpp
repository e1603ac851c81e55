#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/member_list.hpp"
#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"
#include "fabric/rendezvous/tls.hpp"

namespace dunlin::rendezvous {

static_assert(kAnyRank == Options::kAnyRank);

/// The group that this member expects: the checked options.
struct Plan {
  std::string address;
  std::shared_ptr<const Tls> tls = {};  // with keys from the secret and the certificates
  std::string group;
  std::vector<std::string> names;  // by rank; empty strings if members are counted
  Digest names_hash{};             // zeros: members are counted
  std::string terms = {};          // what else all members must have alike
  Rank rank = kAnyRank;            // the rank that we ask for
  std::uint32_t timeout_ms = 0;
  bool may_host = true;
  bool all_must_fit = false;

  [[nodiscard]] std::uint32_t members() const noexcept {
    return static_cast<std::uint32_t>(names.size());
  }
  [[nodiscard]] bool counted() const noexcept { return names_hash == Digest{}; }
  [[nodiscard]] std::string group_text() const { return "group '" + group + "'"; }
  [[nodiscard]] std::string who(Rank of) const { return member_text(names, of); }
};

[[nodiscard]] Plan plan_from(const Options& options, Bytes endpoint_address);

/// A joiner sends this as soon as both sides trust each other.
struct JoinRequest {
  std::uint32_t members = 0;
  Rank rank = kAnyRank;
  Digest names_hash{};
  std::string group = {};
  std::string terms = {};
  Bytes endpoint_address = {};  // refers to the bytes that were decoded
};
[[nodiscard]] std::vector<std::byte> encode(const JoinRequest& request);
/// Returns false if the body is not well formed.
[[nodiscard]] bool decode(Bytes body, JoinRequest& request);

}  // namespace dunlin::rendezvous
