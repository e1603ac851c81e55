#pragma once

#include <string>
#include <vector>

#include <dunlin/error.hpp>

// <CLI/CLI.hpp> takes the compiler two seconds: only for sources that define options.
namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

/// The commands of `dunlin`. Each adds itself as a subcommand whose callback does the work; it
/// returns when all went well, and throws otherwise.
namespace dunlin::app {

/// The exit status of `dunlin`.
enum class Status : int {
  ok = 0,
  failed = 1,        // it ran, and its result is wrong
  bad_input = 2,     // a file, an option or a name that we cannot work with
  could_not_run = 3  // the machine would not let us: memory, processes, permissions
};

/// The input is wrong: the text names the file or option, the place in it, and the fault.
class BadInput : public Error {
 public:
  using Error::Error;
};

/// The work was done and its result does not hold; what differs was printed already.
class VerificationFailed : public Error {
 public:
  using Error::Error;
};

/// For options whose value has no empty form: an empty one is a variable that was not set.
[[nodiscard]] CLI::Validator not_empty();
/// CLI11 would take -1 for a very large number, and a number that is too large for the largest.
[[nodiscard]] CLI::Validator whole_number();
/// A number from `least` to `most`; CLI::Range would let "nan" through, which is on neither side of
/// any bound.
[[nodiscard]] CLI::Validator number_between(double least, double most, const std::string& what);
/// A number of seconds, up to an hour.
[[nodiscard]] CLI::Validator seconds();

/// An option whose value is a list with commas; `entry` says what each of it is. CLI11's own would
/// take "a,,b" for "a,b", and an entry that is missing is a variable that was not set.
CLI::Option* add_list(CLI::App& command, const std::string& option, std::vector<std::string>& list,
                      const std::string& entry, const std::string& about);

// A function for each command, in the folder of its name; add_commands() calls each.
void add_bench(CLI::App& program);
void add_calibrate(CLI::App& program);
void add_daemon(CLI::App& program);
void add_doctor(CLI::App& program);
void add_explain(CLI::App& program);
void add_gateway(CLI::App& program);
void add_kmers(CLI::App& program);
void add_log(CLI::App& program);
void add_multicast(CLI::App& program);
void add_routing(CLI::App& program);
void add_sim(CLI::App& program);
void add_relay(CLI::App& program);
void add_store(CLI::App& program);
void add_top(CLI::App& program);
void add_topic(CLI::App& program);

/// All commands of the program, with their help. Used by main() and by the tests.
void add_commands(CLI::App& program);
/// Parse and run; errors are printed to standard error as one sentence.
Status run(CLI::App& program, int argc, const char* const* argv);
/// Runs a program that has all commands.
Status run(int argc, const char* const* argv);

}  // namespace dunlin::app
