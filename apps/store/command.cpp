#include "command.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dunlin/limits.hpp>

#include "store/serve.hpp"
#include "store/server_list.hpp"
#include "store/tools.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

using resp::ServeOptions;
using resp::ToolOptions;

constexpr const char* kDescription =
    "A key-value store in the memory of its members, for programs in any language: each member\n"
    "serves Redis clients.";

constexpr const char* kServeFooter = R"(
Each member is one such process; all of --members must be there before the store works. Others can
--join later: each gets its share of the keys by itself, unless it has --no-keys. Clients of any
member see the same keys. A signal (Ctrl-C) ends a member, after what its clients have begun. The
keys that it holds go with it, unless it has two --copies or --hand-over.

Exit status: 0 a signal has ended it; 2 wrong input; 3 it could not run, is no member any more, or
could not --hand-over all of its keys.

Examples:
  dunlin store serve                                  # alone; then: redis-cli -p 6390
  dunlin store serve --members a,b,c --name a --copies 2           # likewise b and c; no key dies with one
  dunlin store serve --members a,b --name a --resp 127.0.0.1:6390
  dunlin store serve --members a,b --name b --resp 127.0.0.1:6391
  dunlin store serve --memory 1024 --eviction lru                  # a cache
  dunlin store serve --join --name c --resp 127.0.0.1:6392         # at any time
  dunlin store serve --join --name d --hand-over --resp 127.0.0.1:6393
  dunlin store serve --members a,b --name a --fabric tcp --secret-file secret
                     --rendezvous 10.0.0.1:7700 --resp 10.0.0.1:6390 --password-file password)";

constexpr std::uint32_t kMaxMemoryMb = 1 << 16;

/// It stands between blanks where servers tell each other.
CLI::Validator host_name() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool fits = text.size() <= resp::kMaxHostBytes &&
                          std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
        return fits ? std::string()
                    : fmt::format("must be a host's name or address, of 1 to {} bytes",
                                  resp::kMaxHostBytes);
      },
      "");
}

/// A store of one member needs no names.
void add_member_options(CLI::App& command, cast::PlaceOptions& place) {
  place.group = "store";
  cast::add_place_options(command, place);
  command.get_option("--group")->required(false)->capture_default_str();
  command.get_option("--name")->required(false);
}

void add_serve(CLI::App& store) {
  CLI::App* const command = store.add_subcommand("serve", "Be a member, and serve Redis clients");
  command->footer(kServeFooter);
  const auto options = std::make_shared<ServeOptions>();
  add_member_options(*command, options->place);
  command
      ->add_option(
          "--resp", options->endpoint,
          "Where clients connect; port 0: one that is free. Other hosts can reach it only\n"
          "if it is an address of this host's network, and then it needs a password")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_text(*command, "--announce", options->announced_host, "HOST",
           "The name or address that cluster clients are told for this server, if it is not\n"
           "that of --resp")
      ->check(host_name());
  add_text(*command, "--password-file", options->password_file, "FILE",
           "Holds what clients AUTH with; it may be the file of --secret-file");
  add_number(*command, "--memory", options->memory_mb, "MB",
             "Megabytes that this member contributes, unless it has --no-keys. Members hold\n"
             "keys in proportion to them",
             number_between(1, kMaxMemoryMb, "megabytes"))
      ->capture_default_str();
  add_number(*command, "--max-memory", options->max_memory_mb, "MB",
             "Megabytes of it that entries may take; 0: all. CONFIG SET maxmemory changes it",
             number_between(0, kMaxMemoryMb, "megabytes"))
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--eviction", [options](const std::string& policy) { options->evicts = policy == "lru"; },
          "When there is no room: lru erases keys that were not used for long, none refuses\n"
          "the command; the same for all members")
      ->check(CLI::IsMember({"none", "lru"}))
      ->type_name("none|lru")
      ->default_str("none");
  add_number(*command, "--copies", options->copies, "1|2",
             "Members that hold each key: with 2, no key is lost when one of them dies;\n"
             "the same for all members. Not with --eviction lru",
             number_between(1, 2, "copies"))
      ->capture_default_str();
  command->add_flag("--no-keys", options->holds_none,
                    "With --join: serve the keys of all, and hold none. Without it, a member that\n"
                    "joins gets its share from the others, while clients use the keys");
  command->add_flag("--hand-over", options->hands_over,
                    "After a signal, give all keys to other members before leaving, if these have\n"
                    "room. After a further signal it leaves without");
  add_number(*command, "--cache", options->cache_mb, "MB",
             "Megabytes for the locations of keys; 8 bytes hold one",
             number_between(0, kMaxMemoryMb, "megabytes"))
      ->capture_default_str();
  add_number(*command, "--most-members", options->most_members, "N",
             "That ever come, founders included; the same for all members. Each takes 12 KB\n"
             "of memory at each founder",
             number_between(1, kMaxMembers, "members"))
      ->capture_default_str();
  command->callback([options] { resp::serve(*options); });
}

/// One of get, put, load, dump, stats, status, drain, rebalance.
CLI::App& add_tool(CLI::App& store, const char* name, const char* about,
                   const std::shared_ptr<ToolOptions>& options,
                   void (*tool)(const ToolOptions& options)) {
  CLI::App* const command = store.add_subcommand(name, about);
  command->add_option("--resp", options->endpoint, "Where a member serves clients")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_text(*command, "--password-file", options->password_file, "FILE",
           "Holds the server's password");
  command->callback([options, tool] { tool(*options); });
  return *command;
}

void add_tools(CLI::App& store) {
  const auto options = [] { return std::make_shared<ToolOptions>(); };
  const auto of_get = options();
  add_tool(store, "get", "Print the value of a key; status 1 if it is absent", of_get, resp::get)
      .add_option("KEY", of_get->key, "The key")
      ->required();
  const auto of_put = options();
  CLI::App& put = add_tool(store, "put", "Give a key a value", of_put, resp::put);
  put.add_option("KEY", of_put->key, "The key")->required();
  put.add_option("VALUE", of_put->value, "The value; -: standard input")->required();
  const auto of_load = options();
  add_tool(store, "load", "Send the requests of a file, as dump and redis-cli --pipe have them",
           of_load, resp::load)
      .add_option("FILE", of_load->file, "Their file; -: standard input")
      ->capture_default_str();
  const auto of_dump = options();
  add_tool(store, "dump", "Write the requests that make all keys anew", of_dump, resp::dump)
      .add_option("FILE", of_dump->file, "Where to; -: standard output")
      ->capture_default_str();
  add_tool(store, "stats", "Print what a server knows of itself", options(), resp::stats);
  add_tool(store, "status", "Print which members hold which share of the keys", options(),
           resp::status);
  add_tool(store, "drain",
           "Make the member of this server hand all of its keys to others, and wait until it has",
           options(), resp::drain);
  add_tool(
      store, "rebalance",
      "Give the member of this server its share of the keys again, and wait until no key moves",
      options(), resp::rebalance);
}

}  // namespace

void add_store(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("store", kDescription);
  command->require_subcommand(1);
  add_serve(*command);
  add_tools(*command);
}

}  // namespace dunlin::app
