#include "command.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "signals.hpp"
#include "standard_output.hpp"
#include "text.hpp"

namespace dunlin::app {

namespace {

Status complain(Status status, const char* text) {
  std::fprintf(stderr, "dunlin: %s\n", text);
  return status;
}

/// Names the unknown word in place of a command, where CLI11 would say that a command is missing.
std::string unknown_command(const CLI::App& program) {
  const CLI::App* at = &program;
  std::string in;
  for (auto inner = at->get_subcommands(); !inner.empty(); inner = at->get_subcommands()) {
    at = inner.front();
    in += at->get_name() + ": ";
  }
  const std::vector<std::string> words = program.remaining(true);
  if (at->get_require_subcommand_min() == 0 || words.empty()) return {};
  std::string known;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return in + "there is no command " + in_quotes(words.front()) + "; there are " + known;
}

void parse(CLI::App& program, int argc, const char* const* argv) {
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    program.exit(success, text);
    say(text.str());
  }
}

/// Adds what is between the commas.
void split(const std::string& option, const std::string& text, const std::string& entry,
           std::vector<std::string>& into) {
  for (std::size_t at = 0, number = 1; at <= text.size(); ++number) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma == at)
      throw BadInput(
          fmt::format("{} {}: {} {} is empty; give each one, with a comma between two of them",
                      option, in_quotes(text), entry, number));
    into.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
}

}  // namespace

CLI::Option* add_list(CLI::App& command, const std::string& option, std::vector<std::string>& list,
                      const std::string& entry, const std::string& about) {
  const auto take = [&list, option, entry](const std::vector<std::string>& words) {
    list.clear();
    for (const std::string& word : words) split(option, word, entry, list);
  };
  return command.add_option_function<std::vector<std::string>>(option, take, about);
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""};
}

CLI::Validator whole_number() {
  return {[](const std::string& text) {
            std::uint64_t number = 0;
            const char* const past = text.data() + text.size();
            const auto [end, failure] = std::from_chars(text.data(), past, number);
            const bool right = failure == std::errc{} && end == past;
            return right ? std::string()
                         : fmt::format("must be a whole number from 0 to {}; it is {}", UINT64_MAX,
                                       in_quotes(text));
          },
          ""};
}

CLI::Validator number_between(double least, double most, const std::string& what) {
  return {[least, most, what](const std::string& text) {
            double number = 0;
            const bool right =
                CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
            return right ? std::string()
                         : fmt::format("must be a number of {} from {} to {}", what, least, most);
          },
          ""};
}

CLI::Validator seconds() {
  constexpr double kMostSeconds = 3'600;
  return number_between(0, kMostSeconds, "seconds");
}

Status run(CLI::App& program, int argc, const char* const* argv) {
  hold_standard_descriptors();
  take_back_signals();
  try {
    parse(program, argc, argv);
    demand_output_arrived();
    return Status::ok;
  } catch (const CLI::ParseError& error) {
    if (const std::string wrong = unknown_command(program); !wrong.empty()) {
      return complain(Status::bad_input, wrong.c_str());
    }
    program.exit(error);
    return Status::bad_input;
  } catch (const VerificationFailed& error) {
    return complain(Status::failed, error.what());
  } catch (const BadInput& error) {
    return complain(Status::bad_input, error.what());
  } catch (const std::exception& error) {
    return complain(Status::could_not_run, error.what());
  }
}

}  // namespace dunlin::app
