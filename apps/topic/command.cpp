#include "command.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include <dunlin/pubsub/limits.hpp>

#include "log_options.hpp"
#include "multicast/place.hpp"
#include "topic/tool.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kDescription =
    "Look at the topics of a group, read samples of one, write some, record them, and replay them.";

constexpr const char* kFooter = R"(
The command is a member of the group while it runs: it joins it, or is one of its --members.

  list                 the topics: name, type, level of service, how many members
  info TOPIC           its type, its writers and readers, and their policies
  echo TOPIC           prints each sample, with --- behind it
  publish TOPIC JSON   writes a sample of the topic's type: members that JSON leaves out are zero
  hz TOPIC             how many samples a second, each second
  bw TOPIC             how many bytes a second, each second
  record TOPIC...      writes the samples of these topics, or of all, to an MCAP file
  replay FILE          publishes the samples of an MCAP file, with the original timing
  info FILE            without --group: what an MCAP file has

Exit status: 0 it is done, or a signal came; 2 wrong input; 3 it could not run.

Examples:
  dunlin topic list --group g --join --name tool
  dunlin topic echo square --group g --join --name tool --count 10
  dunlin topic echo square --relay 10.0.0.9:7480 --secret-file secret
  dunlin topic publish square '{"x": 3, "color": "RED"}' --rate 10 --group g --join --name tool
  dunlin topic record square --output squares.mcap --group g --join --name recorder
  dunlin topic echo square --stored --log logs/t --log-founders a,t --group g --join --name t
  dunlin topic replay squares.mcap --rate 2 --group g --join --name player)";

void add_record_options(CLI::App& one, topic::Options& options) {
  one.add_option("topics", options.topics, "Their names (default: all, also those that come later)")
      ->type_name("TOPIC...");
  one.add_option("--output", options.file, "The file, which must not be there yet")
      ->type_name("FILE");
  one.add_option("--info", options.file, "Say what this file has, and record nothing")
      ->each([&options](const std::string&) { options.about_file = true; })
      ->excludes("--output")
      ->type_name("FILE");
  add_number(one, "--duration", options.seconds, "S", "End after so long", seconds());
  add_number(one, "--samples", options.count, "N", "End after so many samples of all topics");
  one.add_flag("--stored", options.stored, "Begin with the samples that the topics have stored");
  one.add_option("--compression", options.compression, "Of the chunks: zstd or none")
      ->check(CLI::IsMember({"zstd", "none"}))
      ->type_name("NAME")
      ->capture_default_str();
  add_number(one, "--chunk-kb", options.chunk_kb, "N",
             "So large is a chunk, before it is compressed", number_between(1, 65536, "KB"))
      ->capture_default_str();
}

void add_replay_options(CLI::App& one, topic::Options& options) {
  one.add_option("file", options.file, "An MCAP file")->required()->type_name("FILE");
  add_list(one, "--topics", options.topics, "topic", "Only these (default: all)")
      ->type_name("TOPIC,...");
  add_number(one, "--rate", options.rate, "X", "So many times as fast as it was recorded",
             number_between(0.001, 1e6, "times"))
      ->capture_default_str();
  add_number(one, "--loop", options.loops, "N", "So many times; 0: until a signal comes")
      ->capture_default_str();
  add_number(one, "--start-offset", options.start_offset, "S",
             "Begin so long after the file's beginning", number_between(0, 1e9, "seconds"))
      ->capture_default_str();
  add_number(one, "--wait-readers", options.wait_readers, "N",
             "Begin when each topic has so many readers; 0: at once (default: 1, or after 2 s)");
}

void add_logged_options(CLI::App& one, topic::Options& options) {
  add_log_options(one, options.logs,
                  "Be a member of logged topics, each with a log below this directory of this\n"
                  "member's own. It must exist");
  one.add_flag("--create", options.create,
               "Be in the topic although no member has it: of level logged, and all samples");
  one.add_option("--type", options.type_file,
                 "Of a topic that is created: its type, as dunlin topic info prints it")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  add_number(one, "--keep", options.keep, "N", "Likewise: keep so many samples only",
             number_between(1, pubsub::kMaxStoredSamples, "samples"));
  add_number(one, "--log-trim", options.log_trim_bytes, "BYTES",
             "Likewise: trim the logs each time that so many more bytes are in them",
             number_between(pubsub::kLeastLogTrimBytes, 1e15, "bytes"));
}

}  // namespace

void add_topic(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("topic", kDescription);
  command->footer(kFooter);
  command->require_subcommand(1);
  const auto add = [command](const char* name, const char* about, topic::Work work) {
    CLI::App* const one = command->add_subcommand(name, about);
    const auto options = std::make_shared<topic::Options>();
    options->work = work;
    const bool takes_topic =
        work != topic::Work::list && work != topic::Work::record && work != topic::Work::replay;
    if (takes_topic)
      one->add_option("topic", options->topic, "Its name")->required()->type_name("TOPIC");
    if (work == topic::Work::record) add_record_options(*one, *options);
    if (work == topic::Work::replay) add_replay_options(*one, *options);
    if (work == topic::Work::publish) {
      one->add_option("sample", options->sample, "The sample, as a JSON object")
          ->required()
          ->type_name("JSON");
      add_number(*one, "--rate", options->rate, "R", "So many a second",
                 number_between(0.001, 1e6, "samples a second"))
          ->capture_default_str();
    }
    if (work == topic::Work::echo || work == topic::Work::publish)
      add_number(*one, "--count", options->count, "N", "So many samples (default: no end)");
    if (takes_topic && work != topic::Work::info && work != topic::Work::publish)
      add_number(*one, "--seconds", options->seconds, "S", "End after so long", seconds());
    if (work == topic::Work::echo)
      one->add_flag("--stored", options->stored,
                    "Begin with the samples that the topic has stored");
    if (work == topic::Work::echo || work == topic::Work::publish || work == topic::Work::record)
      add_logged_options(*one, *options);
    cast::add_place_options(*one, options->place);
    add_list(*one, "--order", options->orders, "order",
             "Be in these orders, whose topics only their members know")
        ->type_name("NAME,...");
    const bool relayed = work == topic::Work::echo || work == topic::Work::publish ||
                         work == topic::Work::record || work == topic::Work::replay;
    if (relayed) {
      add_list(*one, "--relay", options->relays, "relay",
               "Be no member, but a client of these relays, the first one that is there")
          ->type_name("HOST:PORT,...");
    }
    if (relayed || work == topic::Work::info) {
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
  add("record", "Write samples to an MCAP file", topic::Work::record);
  add("replay", "Publish the samples of an MCAP file", topic::Work::replay);
}

}  // namespace dunlin::app
