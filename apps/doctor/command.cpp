#include "command.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/fabric_options.hpp"
#include "doctor/examine.hpp"
#include "doctor/output.hpp"
#include "standard_output.hpp"

namespace dunlin::app {
namespace {

struct DoctorOptions {
  std::string fabric;
  bool json = false;
};

void run_doctor(const DoctorOptions& options) {
  const doctor::Report report = doctor::examine(doctor::this_host());
  say(options.json
          ? doctor::to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n"
          : doctor::describe(report));
  if (!options.fabric.empty()) {
    if (const std::string why = report.why_not(options.fabric); !why.empty())
      throw VerificationFailed("the fabric " + options.fabric + " would not work here: " + why);
  }
  if (const std::size_t problems = report.count(doctor::State::problem); problems > 0)
    throw VerificationFailed(
        fmt::format("{} of what Dunlin needs does not work here: see PROBLEM above", problems));
}

}  // namespace

void add_doctor(CLI::App& program) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      program.add_subcommand("doctor", "what this host can do for a group, and what mends it");
  command->footer(
      "Reads, and changes nothing. Exit status: 0 if all that is here works, 1 if there is a "
      "problem (advice is none), or the fabric that --fabric names would not work.");
  command->add_option("--fabric", options->fabric, "this one must work")
      ->check(CLI::IsMember(fabric_names(Simulator::with)));
  command->add_flag("--json", options->json, "print JSON (docs/doctor.md)");
  command->callback([options] { run_doctor(*options); });
}

}  // namespace dunlin::app
