// Select queries from a catalogue of files in segments (selecting.hpp). For comparison members
// select the same from a SQLite file, of which the page cache holds nothing before each query.
// Start the storage member, rank 0, and some that compute:
//
//     ./selecting files 3 0 10000 & ./selecting files 3 1 10000 & ./selecting files 3 2 10000
//
// The catalogue has so many records, of files in and below /usr, sorted by path.

#include "selecting.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "../typed_lines.hpp"
#include "file_database.hpp"
#include "member.hpp"

namespace {

using services::Answer;
using services::Database;
using services::Record;
using services::Selector;
using services::Sizes;

constexpr std::size_t kQueries = 11;

std::vector<Record> records_of(const std::filesystem::path& top, std::size_t most) {
  using std::filesystem::directory_options;
  std::vector<Record> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           top, directory_options::skip_permission_denied)) {
    struct stat status {};
    const std::string path = entry.path().string();
    if (path.size() >= sizeof(Record::path) || lstat(path.c_str(), &status) != 0) continue;
    Record& record = all.emplace_back();
    record.bytes = status.st_size;
    record.changed_s = status.st_mtime;
    std::copy(path.begin(), path.end(), record.path.begin());
    if (all.size() == most) break;
  }
  std::sort(all.begin(), all.end(),
            [](const Record& a, const Record& b) { return a.path < b.path; });
  return all;
}

double median_us(std::vector<std::uint64_t>& took_ns) {
  std::sort(took_ns.begin(), took_ns.end());
  return static_cast<double>(took_ns[took_ns.size() / 2]) / 1e3;
}

void compare(Member& member, std::size_t records, const std::string& file) {
  std::vector<dunlin::Key> named;
  for (std::size_t i = 0; i < services::segments_of(records); ++i)
    named.push_back(member.find(services::records_name(i)));
  Selector selector(member.space, named);
  std::mt19937_64 random(member.fabric->rank());
  std::vector<std::uint64_t> by_segments_ns, by_sqlite_ns;
  Answer last;
  for (std::size_t i = 0; i < kQueries; ++i) {
    const auto least = static_cast<std::int64_t>(random() % 4096);
    const Sizes sizes{least, least + 20'000};
    Database::drop_page_cache(file);
    const std::uint64_t begin = member.fabric->now_ns();
    member.run(selector.select(sizes));
    const Answer from_segments = selector.answer();
    const std::uint64_t between = member.fabric->now_ns();
    const Answer from_sqlite = Database(file).select(sizes);
    const std::uint64_t end = member.fabric->now_ns();
    if (from_segments != from_sqlite)
      throw dunlin::Error("SQLite selects other files than the segments hold");
    by_segments_ns.push_back(between - begin);
    by_sqlite_ns.push_back(end - between);
    last = from_segments;
    member.space.poll();
  }
  std::cout << "of " << records << " records, " << last.files << " files of " << last.bytes
            << " bytes: " << median_us(by_segments_ns) << " us by segments, "
            << median_us(by_sqlite_ns) << " us by SQLite" << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) throw dunlin::Error("usage: selecting GROUP MEMBERS RANK RECORDS DATABASE");
  const auto records = static_cast<std::size_t>(std::atoi(argv[4]));
  Member member(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])),
                static_cast<std::uint32_t>(std::atoi(argv[3])), services::pool_bytes_of(records));
  const std::string file = argv[5];
  if (member.fabric->rank() == 0) {
    const std::vector<Record> all = records_of("/usr", records);
    if (all.size() < records)
      throw dunlin::Error("/usr has only " + std::to_string(all.size()) + " files");
    std::filesystem::remove(file);
    Database(file).fill(all);
    member.run(services::share(member.space, all));
  } else {
    compare(member, records, file);
  }
  TypedLines input;  // serves the others until its input ends
  while (!input.over()) {
    member.rest(20);
    if (input.front() != nullptr) input.pop();
  }
  member.leave();
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
