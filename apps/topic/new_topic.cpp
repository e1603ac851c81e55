#include <exception>

#include <fmt/format.h>

#include "command.hpp"
#include "log_options.hpp"
#include "read_file.hpp"
#include "text.hpp"
#include "topic/recorded_topic.hpp"
#include "topic/tool.hpp"
#include "topic/type_tree.hpp"

/// Topics of level `logged` that the command creates.
namespace dunlin::app::topic {

NewTopic new_topic_of(const Options& options) {
  NewTopic topic{.type = pubsub::raw_type_support(),
                 .qos = {.level = pubsub::Level::logged,
                         .max_samples = options.keep,
                         .log_trim_bytes = options.log_trim_bytes}};
  if (options.type_file.empty()) return topic;
  std::string text = read_file(options.type_file);
  while (text.ends_with('\n')) text.pop_back();
  text += '\n';
  try {
    static_cast<void>(parse_type(text));
  } catch (const std::exception& error) {
    throw BadInput(fmt::format("--type {}: it is no type, as `dunlin topic info` prints it: {}",
                               in_quotes(options.type_file), error.what()));
  }
  topic.type = pubsub::raw_type_support(text, type_name_of(text));
  return topic;
}

void check_topic_logs(const Options& options) {
  check_log_options(options.logs);
  const bool has_log = !options.logs.log_directory.empty();
  if (has_log && !options.relays.empty())
    throw BadInput("--log: a client of a relay has no log; give --relay or --log");
  if (options.create && !has_log)
    throw BadInput("--create: it creates logged topics, so it needs --log");
  const bool has_policy = options.keep != pubsub::kAllSamples || options.log_trim_bytes != 0 ||
                          !options.type_file.empty();
  if (has_policy && !options.create)
    throw BadInput("--type, --keep and --log-trim are of a topic that is made; give --create, too");
  if (options.create && options.work == Work::record && options.topics.empty())
    throw BadInput("--create: name the topics to record");
  static_cast<void>(new_topic_of(options));
}

}  // namespace dunlin::app::topic
