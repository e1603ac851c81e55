#pragma once

#include <optional>
#include <string_view>

#include "store/command_table.hpp"
#include "store/job.hpp"
#include "store/reply.hpp"

/// What commands on sorted sets share.
namespace dunlin::app::resp {

/// The value of the set, which is empty if there is none; nothing, and an error, if the key has
/// another type.
inline std::optional<std::string_view> set_of(const Call& call, Reply& reply) {
  if (!call.found()) return std::string_view();
  if (call.value().starts_with(kSortedSetMark)) return call.value();
  reply.error(kWrongType);
  return {};
}

/// The key is there, and has no sorted set.
inline bool refuses_set(Job& job, std::optional<std::string_view> current) noexcept {
  job.error = nullptr;
  if (!current || current->starts_with(kSortedSetMark)) return false;
  job.error = kWrongType;
  return true;
}

}  // namespace dunlin::app::resp
