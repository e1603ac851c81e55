#include "fabric/join/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <dunlin/error.hpp>

namespace dunlin {
namespace {

using Needs = JoinOption::Needs;
using Agreed = JoinOption::Agreed;

std::uint32_t number(const std::string& text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || text.empty())
    throw Error("must be a whole number, and not so large");
  return value;
}

bool yes(const std::string& text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  throw Error("must be 1 or 0");
}

std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size(); at = text.find(',', at) + 1) {
    all.push_back(text.substr(at, text.find(',', at) - at));
    if (text.find(',', at) == std::string::npos) break;
  }
  return all;
}

std::string text_of(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ",") + one;
  return text;
}
std::string text_of(std::uint32_t value, std::uint32_t open) {
  return value == open ? std::string() : std::to_string(value);
}
std::string text_of(const std::optional<std::uint32_t>& value) {
  return value ? std::to_string(*value) : std::string();
}

/// The row of an option that is a string.
template <std::string JoinOptions::*Field>
constexpr JoinOption text_option(std::string_view name, std::string_view flag,
                                 std::string_view value, Needs needs, Agreed agreed,
                                 std::string_view about) {
  return {.name = name,
          .flag = flag,
          .value = value,
          .needs = needs,
          .agreed = agreed,
          .about = about,
          .text = [](const JoinOptions& options) { return options.*Field; },
          .take = [](JoinOptions& options, const std::string& text) { options.*Field = text; }};
}

template <std::string TlsFiles::*File>
constexpr JoinOption tls_option(std::string_view name, std::string_view about) {
  return {.name = name,
          .flag = {},
          .value = "FILE",
          .needs = Needs::hosts,
          .agreed = Agreed::no,
          .about = about,
          .text = [](const JoinOptions& options) { return options.tls.*File; },
          .take = [](JoinOptions& options, const std::string& text) { options.tls.*File = text; }};
}

/// The row of an option that is a time.
template <std::optional<std::uint32_t> JoinOptions::*Field>
constexpr JoinOption time_option(std::string_view name, std::string_view flag, Needs needs,
                                 Agreed agreed, std::string_view about,
                                 std::string_view not_in_simulator) {
  return {
      .name = name,
      .flag = flag,
      .value = "MS",
      .needs = needs,
      .agreed = agreed,
      .about = about,
      .text = [](const JoinOptions& options) { return text_of(options.*Field); },
      .take = [](JoinOptions& options, const std::string& text) { options.*Field = number(text); },
      .not_in_simulator = not_in_simulator};
}

constexpr std::array kOptions{
    text_option<&JoinOptions::network>("network", "--fabric", "NAME", Needs::nothing,
                                       Agreed::by_terms, "The network that the members use"),
    text_option<&JoinOptions::group>("group", {}, "NAME", Needs::nothing, Agreed::to_meet,
                                     "The group's name"),
    JoinOption{.name = "members",
               .flag = {},
               .value = "N",
               .needs = Needs::nothing,
               .agreed = Agreed::to_meet,
               .about = "The number of members",
               .text = [](const JoinOptions& options) { return text_of(options.members, 0); },
               .take = [](JoinOptions& options,
                          const std::string& text) { options.members = number(text); }},
    JoinOption{
        .name = "rank",
        .flag = {},
        .value = "N|ordinal",
        .needs = Needs::nothing,
        .agreed = Agreed::no,
        .about = "From 0, or `ordinal`: the number at the end of the host's name, as in a "
                 "Kubernetes stateful set. Without it, ranks follow the order of arrival",
        .text =
            [](const JoinOptions& options) { return text_of(options.rank, JoinOptions::kAnyRank); },
        .take = [](JoinOptions& options, const std::string& text) { options.rank = number(text); }},
    JoinOption{
        .name = "names",
        .flag = {},
        .value = "NAME,...",
        .needs = Needs::nothing,
        .agreed = Agreed::to_meet,
        .about = "In place of `members`: their names, in the order of rank",
        .text = [](const JoinOptions& options) { return text_of(options.names); },
        .take = [](JoinOptions& options, const std::string& text) { options.names = list(text); }},
    text_option<&JoinOptions::name>("name", {}, "NAME", Needs::nothing, Agreed::no,
                                    "This member's name, one of `names`"),
    time_option<&JoinOptions::timeout_ms>("timeout_ms", "--join-timeout", Needs::nothing,
                                          Agreed::no, "How long to wait until all are there",
                                          "nobody waits in the simulator"),
    time_option<&JoinOptions::silence_timeout_ms>(
        "silence_timeout_ms", "--silence-timeout", Needs::nothing, Agreed::no,
        "Silence after which a process counts as dead; 0: never",
        "the simulator's profiles say how long that is"),
    text_option<&JoinOptions::rendezvous>(
        "rendezvous", "--rendezvous", "HOST:PORT|unix:NAME", Needs::hosts, Agreed::to_meet,
        "Where the hosts meet: one of them can bind it, all can reach it"),
    JoinOption{
        .name = "may_serve",
        .flag = {},
        .value = "1|0",
        .needs = Needs::hosts,
        .agreed = Agreed::no,
        .about = "Whether this member may serve the rendezvous",
        .text =
            [](const JoinOptions& options) { return std::string(options.may_serve ? "" : "0"); },
        .take = [](JoinOptions& options,
                   const std::string& text) { options.may_serve = yes(text); }},
    text_option<&JoinOptions::secret>(
        "secret", {}, "TEXT", Needs::hosts, Agreed::to_meet,
        "What all members know and nobody else; a file is safer, because environments are copied "
        "and logged"),
    text_option<&JoinOptions::secret_file>(
        "secret_file", "--secret-file", "FILE", Needs::hosts, Agreed::no,
        "What all hosts know and nobody else does; or DUNLIN_SECRET_FILE names it"),
    tls_option<&TlsFiles::certificate>("tls_certificate",
                                       "This member's certificate for the rendezvous (PEM)"),
    tls_option<&TlsFiles::key>("tls_key", "The certificate's private key"),
    tls_option<&TlsFiles::ca>("tls_ca", "Who signs the certificates of this group alone"),
    JoinOption{
        .name = "encrypt",
        .flag = "--encrypt",
        .value = {},
        .needs = Needs::encryption,
        .agreed = Agreed::by_terms,
        .about = "tcp, auto: encrypt everything that hosts tell each other (all of them or none)",
        .text = [](const JoinOptions& options) { return std::string(options.encrypt ? "1" : ""); },
        .take = [](JoinOptions& options, const std::string& text) { options.encrypt = yes(text); }},
    text_option<&JoinOptions::provider>(
        "provider", "--provider", "NAME", Needs::providers, Agreed::by_terms,
        "ofi: libfabric's network (default: tcp); auto: take it between hosts"),
    text_option<&JoinOptions::device>(
        "device", "--device", "NAME", Needs::hosts, Agreed::no,
        "The network's device (default: the first that has the address)"),
    text_option<&JoinOptions::address>(
        "address", "--address", "IP", Needs::hosts, Agreed::no,
        "This host's address on the network (default: from where it reaches the rendezvous)"),
    text_option<&JoinOptions::access_group>("access_group", {}, "GROUP", Needs::one_host,
                                            Agreed::to_meet,
                                            "A Unix group whose users may join as well"),
};

}  // namespace

std::string JoinOption::variable() const {
  std::string made = "DUNLIN_" + std::string(name);
  std::ranges::transform(made, made.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return made;
}

std::span<const JoinOption> join_options() noexcept { return kOptions; }

bool honours(const Network& network, Needs needs) noexcept {
  switch (needs) {
    case Needs::hosts:
      return network.between_hosts;
    case Needs::encryption:
      return network.encrypts;
    case Needs::providers:
      return network.has_providers;
    case Needs::one_host:
      return !network.between_hosts;
    case Needs::nothing:
      break;
  }
  return true;
}

const JoinOption* unfit(const JoinOptions& options, const Network& network) {
  const auto found = std::ranges::find_if(kOptions, [&](const JoinOption& option) {
    return option.given(options) && !honours(network, option.needs);
  });
  return found == kOptions.end() ? nullptr : &*found;
}

std::string networks_with(Needs needs) {
  std::string text;
  for (const Network& one : networks())
    if (honours(one, needs)) text += (text.empty() ? "" : " or ") + std::string(one.name);
  return text;
}

std::string_view lack_of(Needs needs) noexcept {
  switch (needs) {
    case Needs::encryption:
      return "it does not encrypt";
    case Needs::providers:
      return "only libfabric has providers";
    case Needs::one_host:
      return "only memory of one host belongs to a Unix group";
    default:
      return "only a network has several hosts, devices and addresses";
  }
}

std::string terms(const JoinOptions& options) {
  std::string all;
  // Members of `auto` tell each other what they offer, and find out by themselves.
  const bool offers = options.network == "auto";
  for (const JoinOption& option : kOptions)
    if (option.agreed == Agreed::by_terms && option.given(options) &&
        !(offers && option.needs == Needs::providers))
      all += (all.empty() ? "" : ", ") + std::string(option.name) + " " + option.text(options);
  return all;
}

}  // namespace dunlin
