#pragma once

#include <string_view>

/// Checks of names; each throws an Error that quotes the name and the rule.
namespace dunlin {

/// Whether each character is printable ASCII; true for the empty name.
[[nodiscard]] bool is_printable(std::string_view name) noexcept;

void check_group_name(std::string_view name);
/// Checks the name of a group whose views have fabrics of their own, which are named after it.
void check_joinable_group_name(std::string_view name);
void check_member_name(std::string_view name);
void check_subgroup_name(std::string_view name);
void check_further_group_name(std::string_view name);
void check_region_name(std::string_view name);

}  // namespace dunlin
