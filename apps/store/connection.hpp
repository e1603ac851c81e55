#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "store/job.hpp"
#include "store/limits.hpp"
#include "store/reply.hpp"

/// What commands about the connection and the server share.
namespace dunlin::app::resp {

/// Clients take it for the version of the commands.
inline constexpr std::string_view kRedisVersion = "7.0.0";

[[nodiscard]] inline bool is_client_name(std::string_view name) noexcept {
  return name.size() <= kMaxClientNameBytes &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

inline constexpr const char* kBadName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

/// A command with a word of its own behind another one, such as CLIENT ID.
struct Subcommand {
  std::string_view word;
  int arity;  // counts both words, too; negative: at least so many
  Task (*run)(Job& job, Reply& reply);
  std::string_view help;  // its arguments, and what it does
};

/// Null if there is none of this word.
[[nodiscard]] const Subcommand* find_subcommand(std::span<const Subcommand> all,
                                                std::string_view word) noexcept;
/// Runs the one that the job's second word names, or HELP.
[[nodiscard]] Task run_subcommand(std::span<const Subcommand> all, Job& job, Reply& reply);

}  // namespace dunlin::app::resp
