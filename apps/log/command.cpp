#include "command.hpp"

#include <functional>
#include <memory>
#include <numeric>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "log/log.hpp"
#include "log/posix_disk.hpp"
#include "multicast/journal.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

using nlohmann::ordered_json;

struct LogCommandOptions {
  std::string directory;
  bool json = false;
  std::uint64_t keep_bytes = 0;
};

std::unique_ptr<log::Directory> directory_of(const LogCommandOptions& options) {
  try {
    return log::look_into(options.directory);
  } catch (const Error& error) {
    throw BadInput(error.what());
  }
}

/// A process that has the log open changes its files meanwhile: damage is what is found twice.
std::unique_ptr<log::Log> look(const LogCommandOptions& options, std::uint64_t trust_below) {
  constexpr int kMost = 10;
  std::string before;
  for (int tries = 1;; ++tries) {
    std::unique_ptr<log::Directory> directory = directory_of(options);
    try {
      return std::make_unique<log::Log>(
          std::move(directory),
          log::LogOptions{.name = {}, .trust_below = trust_below, .read_only = true});
    } catch (const Error& error) {
      if (error.what() == before || tries == kMost) throw VerificationFailed(error.what());
      before = error.what();
    }
  }
}

std::uint64_t bytes_of(const log::Log& log) {
  const std::vector<log::SegmentInfo> segments = log.segments();
  return std::accumulate(
      segments.begin(), segments.end(), std::uint64_t{0},
      [](std::uint64_t sum, const log::SegmentInfo& segment) { return sum + segment.bytes; });
}

ordered_json to_json(const log::Log& log) {
  ordered_json json{{"directory", log.path()}, {"name", log.name()},
                    {"first", log.first()},    {"next", log.next()},
                    {"bytes", bytes_of(log)},  {"synced_below", log.mark().synced}};
  json["segments"] = ordered_json::array();
  for (const log::SegmentInfo& segment : log.segments())
    json["segments"].push_back(
        {{"file", segment.file}, {"first", segment.first}, {"bytes", segment.bytes}});
  if (log.snapshot())
    json["snapshot"] = {{"below", log.snapshot()->number}, {"bytes", log.snapshot()->bytes}};
  json["notices"] = log.notices();
  return json;
}

std::string records_of(const log::Log& log) {
  if (log.first() == log.next()) return fmt::format("none; the next one is {}", log.next());
  return fmt::format("{} to {}", log.first(), log.next() - 1);
}

std::string describe(const log::Log& log) {
  std::string text = fmt::format(
      "log {} in {}\n  records  {}\n  mark     records below {} are synced, and below {} trimmed\n"
      "  bytes    {} in {} segments\n",
      in_quotes(log.name()), log.path(), records_of(log), log.mark().synced, log.mark().first,
      bytes_of(log), log.segments().size());
  if (log.snapshot())
    text += fmt::format("  snapshot instead of the records below {}, {} bytes\n",
                        log.snapshot()->number, log.snapshot()->bytes);
  for (const log::SegmentInfo& segment : log.segments())
    text +=
        fmt::format("  {}  from record {}, {} bytes\n", segment.file, segment.first, segment.bytes);
  for (const std::string& notice : log.notices()) text += fmt::format("  notice: {}\n", notice);
  return text;
}

void print(const ordered_json& json) {
  say(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void inspect(const LogCommandOptions& options) {
  const std::unique_ptr<log::Log> log = look(options, UINT64_MAX);
  if (options.json) return print(to_json(*log));
  say(describe(*log));
}

void verify(const LogCommandOptions& options) {
  try {
    const std::unique_ptr<log::Log> log = look(options, 0);
    if (options.json) {
      ordered_json json = to_json(*log);
      json["whole"] = true;
      return print(json);
    }
    say(describe(*log) + fmt::format("  whole: all {} records were read, and fit their checksums\n",
                                     log->next() - log->first()));
  } catch (const VerificationFailed& damage) {
    if (options.json)
      print({{"directory", options.directory}, {"whole", false}, {"damage", damage.what()}});
    throw;
  }
}

void trim(const LogCommandOptions& options) {
  const std::string name = look(options, UINT64_MAX)->name();
  const auto first = [&] { return look(options, UINT64_MAX)->first(); };
  const std::uint64_t first_before = first();
  std::uint64_t given_up = 0;
  {
    multicast::Journal journal(log::posix_disk(), options.directory, name);
    given_up = journal.give_up(options.keep_bytes);
  }
  const std::uint64_t removed = first() - first_before;
  if (options.json) {
    ordered_json json = to_json(*look(options, UINT64_MAX));
    json["given_up"] = given_up;
    json["removed"] = removed;
    return print(json);
  }
  say(describe(*look(options, UINT64_MAX)) +
      fmt::format("  trimmed: {} records were given up; {} were removed, with their files\n",
                  given_up, removed));
}

std::shared_ptr<LogCommandOptions> add_part(
    CLI::App& command, const std::string& name, const std::string& about,
    const std::function<void(const LogCommandOptions&)>& work) {
  CLI::App* const part = command.add_subcommand(name, about);
  auto options = std::make_shared<LogCommandOptions>();
  add_text(*part, "directory", options->directory, "DIRECTORY", "The directory of one member's log")
      ->required();
  part->add_flag("--json", options->json, "Print JSON (docs/log.md)");
  part->callback([options, work] { work(*options); });
  return options;
}

}  // namespace

void add_log(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("log", "Look at the log of a durable subgroup's member, or trim it");
  command->require_subcommand(1);
  command->footer(R"(
The log may be in use by a running member, but for `trim`: a running member trims its log itself
(MulticastOptions::log_trim, dunlin multicast --log-trim).

Exit status: 0 all is well; 1 the log is damaged: file, offset and what to do are printed; 2 there is
no such directory; 3 it could not run.

Examples:
  dunlin log inspect logs/a
  dunlin log verify logs/a --json
  dunlin log trim logs/a --keep-bytes 1000000000)");
  add_part(*command, "inspect",
           "Print name, files, first and last record, bytes, and mark. Reads headers and the last\n"
           "file only, and changes nothing",
           inspect);
  add_part(*command, "verify", "Read all of it, and say where it is damaged. Changes nothing",
           verify);
  const auto options =
      add_part(*command, "trim",
               "Give up the oldest messages of a stopped member's log, which then\n"
               "replays the others only. Whole files go",
               trim);
  command->get_subcommand("trim")
      ->add_option("--keep-bytes", options->keep_bytes, "So many bytes of the last records stay")
      ->required()
      ->check(whole_number())
      ->type_name("BYTES");
}

}  // namespace dunlin::app
