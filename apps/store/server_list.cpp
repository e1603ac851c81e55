#include "store/server_list.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include <dunlin/limits.hpp>
#include <dunlin/remote/limits.hpp>

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kIdBytes = 40;
constexpr std::size_t kNumberBytes = 5;  // of a rank, or a port
static_assert(2 * kNumberBytes + kIdBytes + kMaxHostBytes + kMaxMemberNameBytes + 4 <=
                  kMaxProposalBytes,
              "a server has room in one proposal");

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The text up to the next `end`, which is removed from the front, too.
std::string_view take_word(std::string_view& text, char end) noexcept {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

bool is_number(std::string_view text, std::uint32_t most, std::uint32_t& number) noexcept {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size() && number <= most;
}

}  // namespace

std::string ServerList::proposal_of(const ServedAt& server) {
  return fmt::format("{} {} {} {} {}", server.rank, server.id, server.port, server.host,
                     server.name);
}

std::string ServerList::proposal_to_end(Rank rank) { return fmt::format("{}", rank); }

void ServerList::members_are(std::span<const Rank> members) noexcept {
  members_.assign(members.begin(), members.end());
  std::erase_if(servers_, [&](const ServedAt& one) {
    return std::ranges::find(members_, one.rank) == members_.end();
  });
}

void ServerList::decided(std::span<const std::byte> proposal) noexcept {
  static_cast<void>(take(text_of(proposal)));
}

/// Returns whether it is the line of a member.
bool ServerList::take(std::string_view line) {
  ServedAt server;
  std::uint32_t rank = 0;
  if (!is_number(take_word(line, ' '), kMaxRanks, rank) ||
      std::ranges::find(members_, Rank{rank}) == members_.end())
    return false;
  server.rank = rank;
  const bool ends = line.empty();
  server.id = take_word(line, ' ');
  const std::string_view port = take_word(line, ' ');
  server.host = take_word(line, ' ');
  server.name = line;
  const bool is_whole = server.id.size() == kIdBytes && is_number(port, UINT16_MAX, server.port) &&
                        !server.host.empty() && server.host.size() <= kMaxHostBytes;
  if (!ends && !is_whole) return false;
  const auto at = std::ranges::lower_bound(servers_, server.rank, {}, &ServedAt::rank);
  const bool is_known = at != servers_.end() && at->rank == server.rank;
  if (ends && is_known) servers_.erase(at);
  if (ends) return true;
  if (is_known)
    *at = std::move(server);
  else
    servers_.insert(at, std::move(server));
  return true;
}

std::vector<std::byte> ServerList::save() const {
  std::string text;
  for (const Rank rank : members_) text += fmt::format("{}{}", text.empty() ? "" : " ", rank);
  for (const ServedAt& server : servers_) text += '\n' + proposal_of(server);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

bool ServerList::load(std::span<const std::byte> state) noexcept {
  std::string_view text = text_of(state);
  std::string_view ranks = take_word(text, '\n');
  ServerList list;
  while (!ranks.empty()) {
    std::uint32_t rank = 0;
    if (!is_number(take_word(ranks, ' '), kMaxRanks, rank)) return false;
    list.members_.push_back(rank);
  }
  while (!text.empty())
    if (!list.take(take_word(text, '\n'))) return false;
  *this = std::move(list);
  return true;
}

}  // namespace dunlin::app::resp
