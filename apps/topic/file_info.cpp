#include <filesystem>
#include <map>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "command.hpp"
#include "mcap/file_reader.hpp"
#include "output_file.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "topic/bag.hpp"
#include "topic/player.hpp"

namespace dunlin::app::topic {
namespace {

std::string time_text(std::uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  return fmt::format("{:%F %T}.{:03} UTC", fmt::gmtime(seconds), time_ns / 1'000'000 % 1'000);
}

struct TopicSummary {
  std::set<std::string> types = {};
  std::set<std::string> encodings = {};
  std::uint64_t samples = 0;
  std::size_t channels = 0;
};

}  // namespace

void print_file_info(const std::string& path) {
  const mcap::FileReader file(path);
  const mcap::Statistics& all = file.statistics();
  for (const std::string& warning : file.warnings()) say("warning: " + warning + "\n");
  say(fmt::format("File: {}, {} bytes, by {}\n", in_quotes(path), file.file_bytes(),
                  in_quotes(file.library())));
  if (all.messages > 0)
    say(fmt::format("Duration: {:.3f} s, from {} to {}\n",
                    static_cast<double>(all.end_ns - all.start_ns) / 1e9, time_text(all.start_ns),
                    time_text(all.end_ns)));
  say(fmt::format("Samples: {}\n", all.messages));
  std::map<std::string, TopicSummary> topics;
  for (const auto& [id, channel] : file.channels()) {
    TopicSummary& topic = topics[channel.topic];
    const auto schema = file.schemas().find(channel.schema);
    topic.types.insert(schema == file.schemas().end() ? "" : schema->second.name);
    topic.encodings.insert(channel.encoding);
    const auto found = all.messages_of.find(id);
    if (found != all.messages_of.end()) topic.samples += found->second;
    ++topic.channels;
  }
  for (const auto& [name, topic] : topics) {
    const auto joined = [](const std::set<std::string>& words) {
      std::string text;
      for (const std::string& word : words) text += (text.empty() ? "" : ", ") + printable(word);
      return text;
    };
    say(fmt::format("Topic: {} [{}], {}: {} {} on {} {}\n", printable(name), joined(topic.types),
                    joined(topic.encodings), topic.samples,
                    topic.samples == 1 ? "sample" : "samples", topic.channels,
                    topic.channels == 1 ? "channel" : "channels"));
  }
}

void check_bag_options(const Options& options) {
  if (options.work == Work::replay) static_cast<void>(Player(options));
  if (options.work != Work::record) return;
  if (options.file.empty()) throw BadInput("--output is missing: the file to record to");
  if (std::filesystem::exists(options.file))
    throw BadInput(fmt::format("--output {}: it is there already; give another name, or remove it",
                               in_quotes(options.file)));
  demand_writable({"--output", options.file});
}

}  // namespace dunlin::app::topic
