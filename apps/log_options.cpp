#include "log_options.hpp"

#include <string>

#include "command.hpp"
#include "multicast/place.hpp"

namespace dunlin::app {

void add_log_options(CLI::App& command, pubsub::ParticipantOptions& logs, const char* about) {
  command.add_option("--log", logs.log_directory, about)
      ->check(CLI::ExistingDirectory)
      ->type_name("DIRECTORY");
  add_list(command, "--log-founders", logs.log_founders, "name",
           "All members that may have logs: a topic waits for them when it begins")
      ->type_name("NAME,...");
  command.add_flag(
      "--log-quorum", logs.log_quorum,
      "Logged topics begin again, and go on, with a quorum of their last members; only a\n"
      "topic without any log waits for all founders. The same at all members");
  add_list(command, "--log-given-up", logs.log_given_up, "name",
           "Members whose logs are lost: go on without what only these logs had")
      ->type_name("NAME,...");
}

void check_log_options(const pubsub::ParticipantOptions& logs) {
  const auto refuse = [](const char* option) {
    throw BadInput(std::string(option) + ": only members with a log need it; use it with --log");
  };
  if (logs.log_directory.empty()) {
    if (!logs.log_founders.empty()) refuse("--log-founders");
    if (!logs.log_given_up.empty()) refuse("--log-given-up");
    if (logs.log_quorum) refuse("--log-quorum");
    return;
  }
  if (logs.log_founders.empty())
    throw BadInput(
        "--log-founders is missing: name all members that have logs, those that are not started "
        "now, too");
  cast::check_member_names("--log-founders", logs.log_founders);
  cast::check_member_names("--log-given-up", logs.log_given_up);
}

}  // namespace dunlin::app
