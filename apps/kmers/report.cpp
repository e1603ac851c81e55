#include "kmers/report.hpp"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace dunlin::kmers {
namespace {

std::uint64_t distinct(const Counted& counted) {
  return std::accumulate(counted.histogram.begin(), counted.histogram.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& each) { return sum + each.second; });
}

double load_of(const MemberUse& use) {
  return use.slots == 0 ? 0 : static_cast<double>(use.kmers) / static_cast<double>(use.slots);
}

std::string verdict(const Comparison& comparison) {
  if (comparison.differences == 0)
    return fmt::format("Jellyfish has the same {} k-mers and counts", comparison.kmers);
  return fmt::format("Jellyfish differs in {} k-mers: {}", comparison.differences,
                     comparison.first);
}

}  // namespace

std::string text_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  const double seconds = counted.filter_s + counted.count_s;
  std::string text = fmt::format(
      "{} {}-mers, of which {} are different{}\n"
      "style: {}, as {}\n"
      "time: {:.2f} s filter, {:.2f} s count, {:.2f} s gather; {:.2f} million k-mers/s\n",
      counted.kmers(), options.k, distinct(counted),
      options.filter ? " and occur twice or more" : "", name_of(counted.style),
      counted.why.starts_with("as ") ? counted.why.substr(3) : counted.why, counted.filter_s,
      counted.count_s, counted.gather_s,
      seconds > 0 ? static_cast<double>(counted.kmers()) / seconds / 1e6 : 0);
  for (std::size_t i = 0; i < counted.members.size(); ++i)
    text += fmt::format("member {}: {} k-mers read; {} of {} slots used, load {:.2f}\n", i,
                        counted.members[i].read, counted.members[i].kmers, counted.members[i].slots,
                        load_of(counted.members[i]));
  if (comparison)
    text += fmt::format("{}\njellyfish count with {} threads: {:.2f} s\n", verdict(*comparison),
                        options.processes, comparison->count_s);
  return text;
}

std::string html_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  nlohmann::ordered_json page = {
      {"title", fmt::format("{}-mers of {} file{}", options.k, options.files.size(),
                            options.files.size() == 1 ? "" : "s")},
      {"facts", fmt::format("{} k-mers were read; {} are different{}. Fabric {}; style {}: {}.",
                            counted.kmers(), distinct(counted),
                            options.filter ? " and occur twice or more" : "",
                            options.fabric.network, name_of(counted.style), counted.why)},
      {"histogram", counted.histogram},
      {"seconds",
       {{"filter", counted.filter_s}, {"count", counted.count_s}, {"gather", counted.gather_s}}},
      {"jellyfish", nullptr}};
  for (const Input& file : options.files) page["files"].push_back(file.name);
  for (const MemberUse& use : counted.members)
    page["members"].push_back({{"read", use.read}, {"kmers", use.kmers}, {"slots", use.slots}});
  if (comparison)
    page["jellyfish"] = fmt::format("{}; it counted for {:.2f} s with {} threads.",
                                    verdict(*comparison), comparison->count_s, options.processes);
  // Names of files may hold bytes that are not UTF-8; JSON may not.
  return app::report_page(
      "kmers", page.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace dunlin::kmers
