#include <algorithm>
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

Task help(Job& job, Reply& reply, std::span<const Subcommand> all) {
  const bool has_arguments =
      std::ranges::any_of(all, [](const auto& one) { return one.arity != 2; });
  reply.array(all.size() + 1);
  reply.simple(fmt::format("{} <subcommand>{}. Subcommands are:", upper(job.command->name),
                           has_arguments ? " [<arg> ...]" : ""));
  for (const Subcommand& one : all) reply.simple(fmt::format("{} {}", upper(one.word), one.help));
  co_return Replied{};
}

Task fail(Job&, Reply& reply, std::string why) { co_return reply.error(why); }

bool arity_fits(const Subcommand& one, std::size_t words) noexcept {
  const auto count = static_cast<int>(words);
  return one.arity >= 0 ? count == one.arity : count >= -one.arity;
}

}  // namespace

const Subcommand* find_subcommand(std::span<const Subcommand> all, std::string_view word) noexcept {
  const auto found =
      std::ranges::find_if(all, [&](const Subcommand& one) { return is_word(word, one.word); });
  return found == all.end() ? nullptr : &*found;
}

Task run_subcommand(std::span<const Subcommand> all, Job& job, Reply& reply) {
  const std::string_view word = job.arguments[1];
  const std::string_view command = job.command->name;
  if (is_word(word, "help") && job.arguments.size() == 2) return help(job, reply, all);
  const Subcommand* const one = find_subcommand(all, word);
  if (one == nullptr)
    return fail(job, reply,
                fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", word.substr(0, 128),
                            upper(command)));
  if (arity_fits(*one, job.arguments.size())) return one->run(job, reply);
  return fail(job, reply,
              fmt::format("ERR wrong number of arguments for '{}|{}' command", command, one->word));
}

}  // namespace dunlin::app::resp
