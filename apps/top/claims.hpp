#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "top/sample.hpp"

/// Which ranks of which groups are taken on this host: everybody may know, from the names of
/// sockets (docs/formats/shm-segment.md), also of groups whose memory we may not read.
namespace dunlin::top {

struct Claim {
  std::string access;         // as Segment::access
  std::optional<uid_t> user;  // nothing: a Unix group's
  std::string group;
  Rank rank;
};

/// Finds claims in the content of /proc/net/unix.
[[nodiscard]] std::vector<Claim> parse_claims(std::string_view sockets);
[[nodiscard]] std::vector<Claim> read_claims();

/// "user alice", "Unix group lab".
[[nodiscard]] std::string access_of_user(uid_t user);
[[nodiscard]] std::string access_of_unix_group(gid_t group);

/// The groups of which the sample lacks members because we, being `user`, may not read them.
struct Hidden {
  std::string group;
  std::string sentence;
};
[[nodiscard]] std::vector<Hidden> find_hidden(const std::vector<Claim>& claims,
                                              const Sample& sample, uid_t user);

}  // namespace dunlin::top
