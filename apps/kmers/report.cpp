#include "kmers/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace dunlin::kmers {
namespace {

double load_of(const MemberUse& use) {
  return use.slots == 0 ? 0 : static_cast<double>(use.kmers) / static_cast<double>(use.slots);
}

std::string verdict(const Comparison& comparison) {
  if (comparison.differences == 0)
    return fmt::format("Jellyfish has the same {} k-mers and counts", comparison.kmers);
  return fmt::format("Jellyfish differs in {} k-mers: {}", comparison.differences,
                     comparison.first);
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string beside(const CountOptions& options, const Counted& counted,
                   const Comparison& comparison) {
  const auto ratio = [](double ours, double theirs) { return theirs > 0 ? ours / theirs : 0; };
  return fmt::format(
      "jellyfish with {} threads: {:.2f} s, {:.0f} MB; dunlin takes {:.2f} of that time, and "
      "{:.2f} of that memory",
      options.processes, comparison.count_s, megabytes(comparison.peak_bytes),
      ratio(counted.seconds(), comparison.count_s),
      ratio(static_cast<double>(counted.peak_bytes), static_cast<double>(comparison.peak_bytes)));
}

}  // namespace

std::string text_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  const double passes_s = counted.mark_s + counted.count_s;
  std::string text = fmt::format(
      "{} {}-mers, of which {} are different{}\n"
      "style: {}, as {}\n"
      "time: {:.2f} s mark, {:.2f} s count, {:.2f} s gather; {:.2f} million k-mers/s\n"
      "of a member's time: ",
      counted.kmers(), options.k, counted.different(),
      options.filter ? " and occur twice or more" : "", name_of(counted.style),
      counted.why.starts_with("as ") ? counted.why.substr(3) : counted.why, counted.mark_s,
      counted.count_s, counted.gather_s,
      passes_s > 0 ? static_cast<double>(counted.kmers()) / passes_s / 1e6 : 0);
  for (std::size_t part = 0; part < kParts; ++part)
    text +=
        fmt::format("{}{:.2f} s {}", part == 0 ? "" : ", ", counted.part_s[part], kPartNames[part]);
  text += fmt::format("\nmemory of all processes: {:.0f} MB\n", megabytes(counted.peak_bytes));
  for (std::size_t i = 0; i < counted.members.size(); ++i)
    text += fmt::format("member {}: {} k-mers read; {} of {} slots used, load {:.2f}\n", i,
                        counted.members[i].read, counted.members[i].kmers, counted.members[i].slots,
                        load_of(counted.members[i]));
  if (comparison)
    text += verdict(*comparison) + "\n" + beside(options, counted, *comparison) + "\n";
  return text;
}

std::string html_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  nlohmann::ordered_json page = {
      {"title", fmt::format("{}-mers of {} file{}", options.k, options.files.size(),
                            options.files.size() == 1 ? "" : "s")},
      {"facts", fmt::format("{} k-mers were read; {} are different{}. Fabric {}; style {}: {}.",
                            counted.kmers(), counted.different(),
                            options.filter ? " and occur twice or more" : "",
                            options.fabric.network, name_of(counted.style), counted.why)},
      {"histogram", counted.histogram},
      {"seconds",
       {{"mark", counted.mark_s}, {"count", counted.count_s}, {"gather", counted.gather_s}}},
      {"peak_bytes", counted.peak_bytes},
      {"jellyfish", nullptr}};
  for (std::size_t part = 0; part < kParts; ++part)
    page["parts"][kPartNames[part]] = counted.part_s[part];
  for (const Input& file : options.files) page["files"].push_back(file.name);
  for (const MemberUse& use : counted.members)
    page["members"].push_back({{"read", use.read}, {"kmers", use.kmers}, {"slots", use.slots}});
  if (comparison)
    page["jellyfish"] = {
        {"text", verdict(*comparison) + "; " + beside(options, counted, *comparison)},
        {"seconds", comparison->count_s},
        {"peak_bytes", comparison->peak_bytes}};
  // Names of files may hold bytes that are not UTF-8; JSON may not.
  return app::report_page(
      "kmers", page.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace dunlin::kmers
