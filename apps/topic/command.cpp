#include "command.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "multicast/place.hpp"
#include "topic/tool.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kDescription =
    "Look at the topics of a group, read samples of one, and write some.";

constexpr const char* kFooter = R"(
The command is a member of the group while it runs: it joins it, or is one of its --members.

  list                 the topics: name, type, level of service, how many members
  info TOPIC           its type, its writers and readers, and their policies
  echo TOPIC           prints each sample, with --- behind it
  publish TOPIC JSON   writes a sample of the topic's type: members that JSON leaves out are zero
  hz TOPIC             how many samples a second, each second
  bw TOPIC             how many bytes a second, each second

Exit status: 0 it is done, or a signal came; 2 wrong input; 3 it could not run.

Examples:
  dunlin topic list --group g --join --name tool
  dunlin topic echo square --group g --join --name tool --count 10
  dunlin topic echo square --relay 10.0.0.9:7480 --secret-file secret
  dunlin topic publish square '{"x": 3, "color": "RED"}' --rate 10 --group g --join --name tool)";

}  // namespace

void add_topic(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("topic", kDescription);
  command->footer(kFooter);
  command->require_subcommand(1);
  const auto add = [command](const char* name, const char* about, topic::Work work) {
    CLI::App* const one = command->add_subcommand(name, about);
    const auto options = std::make_shared<topic::Options>();
    options->work = work;
    const bool takes_topic = work != topic::Work::list;
    if (takes_topic)
      one->add_option("topic", options->topic, "Its name")->required()->type_name("TOPIC");
    if (work == topic::Work::publish) {
      one->add_option("sample", options->sample, "The sample, as a JSON object")
          ->required()
          ->type_name("JSON");
      one->add_option("--rate", options->rate, "So many a second")
          ->check(number_between(0.001, 1e6, "samples a second"))
          ->type_name("R")
          ->capture_default_str();
    }
    if (work == topic::Work::echo || work == topic::Work::publish)
      one->add_option("--count", options->count, "So many samples (default: no end)")
          ->check(whole_number())
          ->type_name("N");
    if (takes_topic && work != topic::Work::info && work != topic::Work::publish)
      one->add_option("--seconds", options->seconds, "End after so long")
          ->check(seconds())
          ->type_name("S");
    cast::add_place_options(*one, options->place);
    if (work == topic::Work::echo || work == topic::Work::publish) {
      add_list(*one, "--relay", options->relays, "relay",
               "Be no member, but a client of these relays, the first one that is there")
          ->type_name("HOST:PORT,...");
      one->get_option("--group")->required(false);
      one->get_option("--name")->required(false);
    }
    one->callback([options] { topic::run(*options); });
  };
  add("list", "The topics of the group", topic::Work::list);
  add("info", "A topic's type, writers and readers", topic::Work::info);
  add("echo", "Print a topic's samples", topic::Work::echo);
  add("publish", "Write samples to a topic", topic::Work::publish);
  add("hz", "Samples a second", topic::Work::hz);
  add("bw", "Bytes a second", topic::Work::bw);
}

}  // namespace dunlin::app
