#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/harness/folder.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"
#include "examples/services/file_database.hpp"
#include "examples/services/selecting.hpp"

/// Figure 9a of DDSS: the queries of examples/services, from segments in another process's memory,
/// and from a file that is in no cache.
namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 3> kRecords{1'000, 10'000, 100'000};
/// Queries take some 19 % less time from shared memory than without, for each number of records.
constexpr double kPublishedPercentLess = 19;

std::vector<services::Record> made_up(std::size_t count) {
  std::vector<services::Record> records(count);
  std::mt19937_64 random(count);
  for (std::size_t i = 0; i < count; ++i) {
    services::Record& record = records[i];
    record.bytes = static_cast<std::int64_t>(std::exp2(4 + 18.0 * double(random() % 1024) / 1024));
    record.changed_s = static_cast<std::int64_t>(random() % 2'000'000'000);
    std::snprintf(record.path.data(), record.path.size(), "/usr/share/files/%zu", i);
  }
  return records;
}

void finish(SegmentSpace& space, const remote::Job& job) {
  while (!job.finished()) space.poll();
  job.check();
}

/// Member 0's side. Query i is the same in both ways.
class Queries {
 public:
  Queries(SegmentSpace& space, std::size_t records, const std::string& file)
      : space_(space), selector_(space, find(space, records)), file_(file) {}

  double from_segments_ns() {
    const services::Sizes sizes = sizes_of(from_segments_.size());
    const double begin = now_ns();
    finish(space_, selector_.select(sizes));
    const double took = now_ns() - begin;
    from_segments_.push_back(selector_.answer());
    return took;
  }
  double from_file_ns() {
    const services::Sizes sizes = sizes_of(from_file_.size());
    services::Database::drop_page_cache(file_);
    const double begin = now_ns();
    const services::Answer answer = services::Database(file_).select(sizes);
    const double took = now_ns() - begin;
    from_file_.push_back(answer);
    return took;
  }
  void check() const {
    if (from_segments_ != from_file_)
      throw Error("bench: SQLite selects other files than the segments hold");
  }

 private:
  static std::vector<Key> find(SegmentSpace& space, std::size_t records) {
    std::vector<Key> named;
    for (std::size_t i = 0; i < services::segments_of(records); ++i) {
      auto found = space.find(services::records_name(i));
      demand(found);
      named.push_back(found.result().key);
    }
    return named;
  }
  static services::Sizes sizes_of(std::size_t query) {
    const auto least = static_cast<std::int64_t>(std::mt19937_64(query)() % 4096);
    return {least, least + 20'000};
  }

  SegmentSpace& space_;
  services::Selector selector_;
  std::string file_;
  std::vector<services::Answer> from_segments_, from_file_;
};

std::vector<Result> measure(const RealNetwork& network, const Effort& effort, std::size_t count) {
  const std::vector<services::Record> records = made_up(count);
  const Folder folder;
  const std::string file = folder / "files.db";
  services::Database(file).fill(records);
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentPair pair(me, group, services::pool_bytes_of(count));
    if (me.rank() == 1) finish(pair.space(), services::share(pair.space(), records));
    pair.meet();
    std::optional<Queries> queries;
    if (me.rank() == 0) queries.emplace(pair.space(), count, file);
    pair.meet();
    alternate(me, effort.rounds,
              {[&] { return pair.turn([&] { return queries->from_segments_ns(); }); },
               [&] { return pair.turn([&] { return queries->from_file_ns(); }); }});
    if (queries) queries->check();
  });
  const auto ours = team.series(0), theirs = team.series(1);
  std::vector<double> less(ours.size());
  std::ranges::transform(ours, theirs, less.begin(),
                         [](double a, double b) { return 100 * (1 - a / b); });
  std::vector<Result> results{
      compared({.params = {{"figure", "a query"}, {"records", double(count)}}, .unit = "ns"}, ours,
               "SQLite, file in no cache", theirs)};
  if (less.empty()) return results;
  results.push_back({.params = {{"figure", "less time"}, {"records", double(count)}},
                     .unit = "%",
                     .better = Better::higher,
                     .value = summarize(less),
                     .published = kPublishedPercentLess});
  return results;
}

}  // namespace

std::vector<Experiment> queries() {
  const RealNetwork& network = real_network("shm");
  return {{.name = "queries",
           .title = "select queries from shared records, beside SQLite (figure 9a of DDSS)",
           .fabric = network.name,
           .x = "records",
           .run = on_network(network, for_settings(kRecords, measure, 1))}};
}

}  // namespace dunlin::bench
