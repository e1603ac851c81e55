#include "fabric/names.hpp"

#include <algorithm>
#include <string>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

namespace dunlin {
namespace {

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool printable(char c) { return c >= ' ' && c <= '~'; }

std::string quoted(std::string_view name) {
  std::string text;
  for (char c : name.substr(0, 80)) text += printable(c) ? c : '?';
  return "'" + text + (name.size() > 80 ? "...'" : "'");
}

using Allowed = bool (*)(char);

void check(std::string_view what, std::string_view name, std::size_t limit, Allowed allowed,
           std::string_view rule) {
  const bool good =
      !name.empty() && name.size() <= limit && std::all_of(name.begin(), name.end(), allowed);
  if (good) return;
  throw Error(std::string(what) + " name " + quoted(name) + " is not possible: it must be 1 to " +
              std::to_string(limit) + " characters of " + std::string(rule));
}

}  // namespace

bool is_printable(std::string_view name) noexcept { return std::ranges::all_of(name, printable); }

void check_group_name(std::string_view name) {
  check("group", name, kMaxGroupNameBytes, plain, "A-Z a-z 0-9 . _ - (kMaxGroupNameBytes)");
}

void check_joinable_group_name(std::string_view name) {
  check("group", name, kMaxJoinableGroupNameBytes, plain,
        "A-Z a-z 0-9 . _ -, if others may join it (kMaxJoinableGroupNameBytes)");
}

void check_member_name(std::string_view name) {
  check("member", name, kMaxMemberNameBytes, plain, "A-Z a-z 0-9 . _ - (kMaxMemberNameBytes)");
}

void check_subgroup_name(std::string_view name) {
  check("subgroup", name, kMaxSubgroupNameBytes, plain,
        "A-Z a-z 0-9 . _ - (kMaxSubgroupNameBytes)");
}

void check_further_group_name(std::string_view name) {
  check("further group", name, kMaxFurtherGroupNameBytes, plain,
        "A-Z a-z 0-9 . _ - (kMaxFurtherGroupNameBytes)");
}

void check_region_name(std::string_view name) {
  check("region", name, kMaxRegionNameBytes, printable, "printable ASCII (kMaxRegionNameBytes)");
}

}  // namespace dunlin
