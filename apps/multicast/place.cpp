#include "multicast/place.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dunlin/join.hpp>

#include "command.hpp"
#include "fabric/launch/environment.hpp"
#include "fabric/names.hpp"
#include "fabric/private_file.hpp"
#include "text.hpp"

namespace dunlin::app::cast {
namespace {

constexpr std::uint32_t kFormMs = 10'000;  // a fabric of those that are there

/// Reports the library's complaint about a name as a fault of this option.
template <class Check>
void check_name(const char* option, const std::string& name, Check check) {
  try {
    check(name);
  } catch (const Error& error) {
    throw BadInput(fmt::format("{} {}: {}", option, in_quotes(name), error.what()));
  }
}

}  // namespace

void check_member_names(const char* option, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    check_name(option, name, check_member_name);
    if (std::ranges::count(names, name) > 1)
      throw BadInput(fmt::format("{}: {} is there twice", option, name));
  }
}

Place::Place(PlaceOptions options) : options_(std::move(options)) {
  check(options_.fabric);
  if (options_.fabric.network == "sim")
    throw BadInput("--fabric sim: members are processes; dunlin sim multicast has simulated ones");
  check_names();
  if (options_.fabric.network == "shm") {
    if (!options_.listen.empty() || !options_.contacts.empty())
      throw BadInput(
          "--listen and --contacts: on one host the group's name is the rendezvous; use them with "
          "--fabric "
          "tcp, auto, ofi or verbs");
    return;
  }
  check_addresses();
  const launch::Environment environment;
  if (!options_.fabric.secret_file.empty()) {
    check_name("--secret-file", options_.fabric.secret_file,
               [this](const std::string& file) { secret_ = read_secret(file, "--secret-file"); });
  } else if (!environment.has("DUNLIN_SECRET_FILE") && !environment.has("DUNLIN_SECRET")) {
    throw BadInput(
        "--secret-file is missing: members need a secret that nobody else knows, in a file; a good "
        "one: openssl rand -hex 32");
  }
}

void Place::check_names() const {
  const std::vector<std::string>& founders = options_.members;
  check_name("--group", options_.group, check_joinable_group_name);
  check_name("--name", options_.name, check_member_name);
  if (options_.join && !founders.empty())
    throw BadInput("--join and --members: a joiner is no founder; give one of them");
  if (!options_.join && founders.empty())
    throw BadInput("--members is missing: name all founders, or --join a group of others");
  check_member_names("--members", founders);
  if (!options_.join && std::ranges::count(founders, options_.name) == 0)
    throw BadInput(fmt::format("--name {}: not one of --members {}; a later joiner gives --join",
                               options_.name, fmt::join(founders, ",")));
}

/// Without addresses, all members are on this host.
void Place::check_addresses() {
  const bool here = options_.fabric.rendezvous.empty() && options_.listen.empty();
  if (options_.join && options_.contacts.empty())
    throw BadInput("--contacts is missing: where members may be found, as their --listen says");
  if (here) {
    options_.fabric.rendezvous = "unix:" + options_.group;
    options_.listen = fmt::format("unix:{}.{}", options_.group, options_.name);
  }
  if (options_.listen.empty())
    throw BadInput("--listen is missing: where this member, and nobody else, can be found");
  if (options_.fabric.rendezvous.empty() && !options_.join)
    throw BadInput("--rendezvous is missing: where the founders meet");
}

std::uint32_t Place::timeout_ms() const {
  return options_.fabric.timeout_ms.value_or(kJoinTimeOutMs);
}

JoinOptions Place::join_options() const {
  JoinOptions options = options_.fabric;
  options.group = options_.group;
  options.secret = secret_;
  options.secret_file.clear();
  if (!options.silence_timeout_ms) options.silence_timeout_ms = options_.silence_ms;
  return options;
}

std::unique_ptr<PendingJoin> Place::begin_founding() const {
  JoinOptions options = join_options();
  options.names = options_.members;
  options.name = options_.name;
  options.timeout_ms = timeout_ms();
  return begin_join(options);
}

std::string Place::other_founders() const {
  std::string text;
  for (const std::string& founder : options_.members)
    if (founder != options_.name) text += (text.empty() ? "'" : ", '") + founder + "'";
  return text;
}

std::shared_ptr<Rendezvous> Place::rendezvous() const {
  JoinOptions options = join_options();
  options.rendezvous = options_.listen;
  options.timeout_ms = kFormMs;
  return make_rendezvous(options, options_.contacts);
}

}  // namespace dunlin::app::cast
