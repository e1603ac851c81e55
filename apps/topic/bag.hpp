#pragma once

#include <string>

#include "topic/session.hpp"
#include "topic/tool.hpp"

/// `dunlin topic record` and `replay`, and what `record --info` and `info FILE` print.
namespace dunlin::app::topic {

/// Throws BadInput unless the file of replay, and the options of record, can be used: before the
/// command becomes a member.
void check_bag_options(const Options& options);
void record(const Options& options, Session& session);
void replay(const Options& options, Session& session);
/// Topics, types, counts and duration.
void print_file_info(const std::string& path);

}  // namespace dunlin::app::topic
