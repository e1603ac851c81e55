#pragma once

#include <string>

#include "store/limits.hpp"

/// The tools for a store that `dunlin store serve` serves. All throw Error.
namespace dunlin::app::resp {

struct ToolOptions {
  std::string endpoint = kDefaultEndpoint;
  std::string password_file = {};
  std::string key = {};
  std::string value = {};  // "-": standard input
  std::string file = "-";  // for load and dump; "-": standard input or output
};

/// Prints the value as it is; throws VerificationFailed if there is none.
void get(const ToolOptions& options);
void put(const ToolOptions& options);
/// Sends the requests of a file: one that dump wrote, or any that `redis-cli --pipe` takes.
void load(const ToolOptions& options);
/// Writes the requests that make all keys anew.
void dump(const ToolOptions& options);
void stats(const ToolOptions& options);
/// Prints a table of the members.
void status(const ToolOptions& options);
/// Waits until the server's member has handed all of its keys to others.
void drain(const ToolOptions& options);
/// Waits until the server's member has its share of the keys, and no key moves any more.
void rebalance(const ToolOptions& options);

}  // namespace dunlin::app::resp
