#include "top/claims.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <grp.h>

namespace dunlin::top {
namespace {

constexpr std::string_view kPrefix = "@dunlin:";

/// The text up to the next colon; `rest` loses both.
std::string_view take_field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(':'), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "u1000:rack7:2", or "g100:rack7:2".
std::optional<Claim> parse_claim(std::string_view name) {
  const std::string_view who = take_field(name);
  const std::string_view group = take_field(name);
  const std::optional<Rank> rank = to_number(take_field(name));
  if (who.size() < 2 || group.empty() || !rank || !name.empty()) return std::nullopt;
  const std::optional<std::uint32_t> id = to_number(who.substr(1));
  if (!id || (who.front() != 'u' && who.front() != 'g')) return std::nullopt;
  const bool of_user = who.front() == 'u';
  return Claim{.access = of_user ? access_of_user(*id) : access_of_unix_group(*id),
               .user = of_user ? id : std::nullopt,
               .group = std::string(group),
               .rank = *rank};
}

bool is_seen(const Claim& claim, const Sample& sample) {
  return std::any_of(sample.groups.begin(), sample.groups.end(), [&](const Group& g) {
    return g.name == claim.group && g.access == claim.access && g.member(claim.rank) != nullptr;
  });
}

}  // namespace

std::vector<Claim> parse_claims(std::string_view sockets) {
  std::vector<Claim> claims;
  for (std::size_t at = 0; (at = sockets.find(kPrefix, at)) != std::string_view::npos;) {
    at += kPrefix.size();
    const std::string_view name = sockets.substr(at, sockets.find('\n', at) - at);
    std::optional<Claim> claim = parse_claim(name);
    if (!claim) continue;
    // A listener and its connections have one name.
    const bool known = std::any_of(claims.begin(), claims.end(), [&](const Claim& c) {
      return c.access == claim->access && c.group == claim->group && c.rank == claim->rank;
    });
    if (!known) claims.push_back(std::move(*claim));
  }
  return claims;
}

std::vector<Claim> read_claims() {
  std::ifstream file("/proc/net/unix");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_claims(text.str());
}

std::string access_of_user(uid_t user) {
  const std::string name = user_name(user);
  return name.starts_with("user ") ? name : "user " + name;
}

std::string access_of_unix_group(gid_t group) {
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> space(1 << 16);
  getgrgid_r(group, &entry, space.data(), space.size(), &found);
  return "Unix group " + (found == nullptr ? std::to_string(group) : found->gr_name);
}

std::vector<Hidden> find_hidden(const std::vector<Claim>& claims, const Sample& sample,
                                uid_t user) {
  std::map<std::pair<std::string, std::string>, int> missing;
  for (const Claim& claim : claims) {
    // Our own that we do not see have come or gone just now.
    const bool may_read = user == 0 || claim.user == user;
    if (!may_read && !is_seen(claim, sample)) ++missing[{claim.group, claim.access}];
  }
  std::vector<Hidden> hidden;
  for (const auto& [key, count] : missing) {
    const auto& [group, access] = key;
    const bool of_user = access.starts_with("user ");
    hidden.push_back(
        {group, fmt::format("{} member{} of group '{}' ({}) cannot be read: run this {}with sudo.",
                            count, count == 1 ? "" : "s", group, access,
                            of_user ? "as " + access + ", or " : "")});
  }
  return hidden;
}

}  // namespace dunlin::top
