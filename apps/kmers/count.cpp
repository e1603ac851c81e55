#include "kmers/count.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "cluster/watch.hpp"
#include "command.hpp"
#include "kmers/chunk.hpp"
#include "kmers/found.hpp"
#include "kmers/resident.hpp"
#include "kmers/worker.hpp"
#include "team/team_group.hpp"

namespace dunlin::kmers {
namespace {

using app::Member;

constexpr std::uint32_t kUntilAllHaveComeMs = 60'000;  // somebody starts the hosts by hand
constexpr const char* kBadInput = "bad input: ";

double first_of(std::span<const double> series) { return series.empty() ? 0 : series.front(); }

Counted counted_by(const app::Team& team) {
  Counted counted;
  counted.mark_s = first_of(team.series(mark_s));
  counted.count_s = first_of(team.series(count_s));
  counted.gather_s = first_of(team.series(gather_s));
  counted.style = first_of(team.series(chosen_style)) > 0 ? Style::message : Style::one_sided;
  counted.why = team.note();
  const auto slots = team.series(of_member_slots), kmers = team.series(of_member_kmers),
             read = team.series(of_member_read);
  for (std::size_t i = 0; i < slots.size(); ++i)
    counted.members.push_back({.slots = static_cast<std::uint64_t>(slots[i]),
                               .kmers = static_cast<std::uint64_t>(kmers[i]),
                               .read = static_cast<std::uint64_t>(read[i])});
  if (counted.members.empty()) return counted;  // another host has them
  counted.peak_bytes =
      static_cast<std::uint64_t>(first_of(team.series(peak_bytes))) + resident_bytes();
  for (std::uint32_t part = 0; part < kParts; ++part)
    for (const double seconds : team.series(first_part + part))
      counted.part_s[part] += seconds / static_cast<double>(counted.members.size());
  return counted;
}

}  // namespace

Counted count(const CountOptions& with) {
  CountOptions options = with;
  for (const Input& file : options.files) options.letters += letters_of(file);
  app::check(options.fabric);
  const app::Cluster cluster(options.fabric);
  const std::string text =
      fmt::format("{}-mers of {} files by {} processes{}, style {}", options.k,
                  options.files.size(), options.processes,
                  options.filter ? "" : ", with those that occur once", name_of(options.style));
  app::Watch watch(cluster, {.what = "kmers", .text = text, .hash = std::hash<std::string>()(text)},
                   kUntilAllHaveComeMs);
  watch.await_others();
  const app::TeamGroup group(cluster, {.name = "kmers",
                                       .members = options.processes,
                                       .timeout = std::chrono::seconds(options.timeout_s),
                                       .watch = &watch});
  app::TeamOptions processes = group.team(options.processes);
  processes.pin = false;  // members wait for each other: none may stay on a core that others use
  app::Team team(processes);
  try {
    watch.guard([&] {
      team.run([&](Member& me) {
        try {
          work(me, options, group.join(me.rank()));
        } catch (const app::BadInput& error) {
          me.note(std::string(kBadInput) + error.what());
          throw;
        }
      });
    });
  } catch (const Error&) {
    const std::string note = team.note();
    if (note.starts_with(kBadInput))
      throw app::BadInput(note.substr(std::string(kBadInput).size()));
    throw;
  }
  Counted counted = counted_by(team);
  if (counted.members.empty()) return counted;
  FoundFile file(options.counts_file);
  for (FoundKmer found{}; file.next(found);) ++counted.histogram[found.count];
  return counted;
}

}  // namespace dunlin::kmers
