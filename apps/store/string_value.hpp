#pragma once

#include <optional>
#include <string_view>

#include "store/command_table.hpp"
#include "store/job.hpp"

/// What commands on strings share.
namespace dunlin::app::resp {

inline Job& job_of(void* context) noexcept { return *static_cast<Job*>(context); }

/// The key is there, and has no string.
inline bool refuses(Job& job, std::optional<std::string_view> current) noexcept {
  job.error = nullptr;
  if (!current || !has_mark(*current)) return false;
  job.error = kWrongType;
  return true;
}

/// "string", "hash" or "zset".
[[nodiscard]] inline std::string_view type_of(std::string_view value) noexcept {
  if (value.starts_with(kHashMark)) return "hash";
  return value.starts_with(kSortedSetMark) ? "zset" : "string";
}

}  // namespace dunlin::app::resp
