#pragma once

#include <CLI/CLI.hpp>

#include <dunlin/pubsub.hpp>

/// The options of commands that can be members of logged topics: `--log` and those that go with it.
namespace dunlin::app {

/// `about`: which logs the command keeps.
void add_log_options(CLI::App& command, pubsub::ParticipantOptions& logs, const char* about);
/// Throws BadInput for options that do not fit each other.
void check_log_options(const pubsub::ParticipantOptions& logs);

}  // namespace dunlin::app
