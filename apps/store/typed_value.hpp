#pragma once

#include <optional>
#include <string_view>

#include "store/command_table.hpp"
#include "store/job.hpp"
#include "store/reply.hpp"

/// What commands on hashes and on sorted sets share: `mark` is the mark of the type.
namespace dunlin::app::resp {

/// The value of the key, which is empty if there is none; nothing, and an error, if the key has
/// another type.
inline std::optional<std::string_view> value_of(const Call& call, std::string_view mark,
                                                Reply& reply) {
  if (!call.found()) return std::string_view();
  if (call.value().starts_with(mark)) return call.value();
  reply.error(kWrongType);
  return {};
}

/// The key is there, and has another type.
inline bool refuses(Job& job, std::optional<std::string_view> current,
                    std::string_view mark) noexcept {
  job.error = current && !current->starts_with(mark) ? kWrongType : nullptr;
  return job.error != nullptr;
}

}  // namespace dunlin::app::resp
