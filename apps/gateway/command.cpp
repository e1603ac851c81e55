#include "command.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "gateway/options.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kGatewayDescription =
    "Be a member of a group and a participant in a DDS domain, and carry topics between them.";

constexpr const char* kGatewayFooter = R"(
Topics are carried in both directions with their keys and the states of their instances, and no
sample comes back to the side that it is from. --topics names topics of the group; --config has an
object for each topic, with its name, type and policies in the domain. A policy that cannot be
carried is refused. The environment variable CYCLONEDDS_URI configures Cyclone DDS.

The member is called NET or NET-..., where NET is --network, so that other gateways know it.

Exit status: 0 a signal has ended it; 2 wrong input; 3 it could not run, or is no member any more.

Examples:
  dunlin gateway --group plant --join --name dds0 --topics square,circle
  dunlin gateway --group plant --join --name dds7-b --domain 7 --config topics.json)";

constexpr double kMostDomain = 230;  // whose ports are below 65536

}  // namespace

void add_gateway(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("gateway", kGatewayDescription);
  command->footer(kGatewayFooter);
  const auto options = std::make_shared<gateway::Options>();
  cast::add_place_options(*command, options->place);
  add_number(*command, "--domain", options->domain, "N", "The number of the DDS domain",
             number_between(0, kMostDomain, "as the number of a domain"))
      ->capture_default_str();
  add_text(*command, "--network", options->network, "NET",
           "What the names of all gateways between this group and domain begin with "
           "(default: \"dds\" and the domain's number)");
  add_list(*command, "--topics", options->topics, "a topic",
           "Topics of the group, which the domain has by the same names");
  add_text(*command, "--config", options->config, "FILE",
           "Topics with their types and policies, as JSON");
  command->callback([options] { gateway::run(*options); });
}

}  // namespace dunlin::app
