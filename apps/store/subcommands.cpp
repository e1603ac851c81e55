#include <string>

#include <fmt/format.h>

#include "store/command_table.hpp"
#include "store/connection.hpp"

namespace dunlin::app::resp {
namespace {

std::string upper(std::string_view text) {
  std::string all(text);
  for (char& c : all)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return all;
}

void help(std::span<const Subcommand> all, std::string_view command, Reply& reply) {
  reply.array(all.size() + 1);
  reply.simple(fmt::format("{} <subcommand> [<arg> ...]. Subcommands are:", upper(command)));
  for (const Subcommand& one : all) reply.simple(fmt::format("{} {}", upper(one.word), one.help));
}

bool arity_fits(const Subcommand& one, std::size_t words) noexcept {
  const auto count = static_cast<int>(words);
  return one.arity >= 0 ? count == one.arity : count >= -one.arity;
}

}  // namespace

bool conclude_subcommand(std::span<const Subcommand> all, Job& job, Reply& reply) {
  const std::string_view word = job.arguments[1];
  for (const Subcommand& one : all) {
    if (!is_word(word, one.word)) continue;
    if (arity_fits(one, job.arguments.size())) return one.conclude(job, reply);
    return reply.error(fmt::format("ERR wrong number of arguments for '{}|{}' command",
                                   job.command->name, one.word));
  }
  if (is_word(word, "help") && job.arguments.size() == 2) {
    help(all, job.command->name, reply);
  } else {
    reply.error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", word.substr(0, 128),
                            upper(job.command->name)));
  }
  return true;
}

}  // namespace dunlin::app::resp
