// Select queries: a catalogue of files (size, time of change, and path of each) lies in segments at
// a storage member, and members that compute select from it what they need, without asking the
// storage member. For comparison they select the same from a SQLite file, of which the page cache
// holds nothing before each query. Start the storage member, rank 0, and some that compute:
//
//     ./selecting files 3 0 10000 & ./selecting files 3 1 10000 & ./selecting files 3 2 10000
//
// The catalogue has so many records, of files in and below /usr, sorted by path.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

constexpr std::size_t kRecordsPerSegment = 512;  // 64 KB
constexpr std::size_t kQueries = 11;

struct Record {
  std::int64_t bytes = 0;
  std::int64_t changed_s = 0;  // since 1970
  std::array<char, 112> path{};
};

struct Segment {
  std::uint64_t records = 0;
  std::array<Record, kRecordsPerSegment> all{};
};

/// What a query selects: files of these sizes.
struct Sizes {
  std::int64_t least, most;
};

struct Answer {
  std::uint64_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t newest_s = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
  void add(std::int64_t size, std::int64_t changed_s) {
    ++files;
    bytes += size;
    newest_s = std::max(newest_s, changed_s);
  }
};

std::string name_of(std::size_t segment) { return "files/" + std::to_string(segment); }

// --- the storage member --------------------------------------------------------------------------

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

void share(Member& member, const std::vector<Record>& records) {
  const auto segment = std::make_unique<Segment>();
  std::size_t done = 0;
  for (std::size_t i = 0; done < records.size(); ++i) {
    segment->records = std::min(kRecordsPerSegment, records.size() - done);
    std::copy_n(records.begin() + static_cast<std::ptrdiff_t>(done), segment->records,
                segment->all.begin());
    done += segment->records;
    const dunlin::Key key = member.allocate({.bytes = sizeof(Segment),
                                             .coherence = dunlin::Coherence::write,
                                             .placement = dunlin::Placement::here()});
    demand(member.space.put(key, dunlin::bytes_of(*segment)));
    // The name comes last: a process that finds a segment finds it full.
    std::uint64_t value = key.value;
    demand(member.space.put(member.allocate({.bytes = sizeof value,
                                             .coherence = dunlin::Coherence::write,
                                             .placement = dunlin::Placement::here(),
                                             .name = name_of(i)}),
                            dunlin::bytes_of(value)));
  }
}

// --- SQLite --------------------------------------------------------------------------------------

class Database {
 public:
  explicit Database(const std::string& file) : file_(file) {
    if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK) fail();
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(database_); }

  void fill(const std::vector<Record>& records) {
    run("CREATE TABLE files (bytes INTEGER, changed_s INTEGER, path TEXT); BEGIN");
    sqlite3_stmt* insert = nullptr;
    const char* const text = "INSERT INTO files VALUES (?, ?, ?)";
    if (sqlite3_prepare_v2(database_, text, -1, &insert, nullptr) != SQLITE_OK) fail();
    for (const Record& record : records) {
      sqlite3_bind_int64(insert, 1, record.bytes);
      sqlite3_bind_int64(insert, 2, record.changed_s);
      sqlite3_bind_text(insert, 3, record.path.data(), -1, SQLITE_STATIC);
      if (sqlite3_step(insert) != SQLITE_DONE) fail();
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    run("COMMIT");
  }
  Answer select(const Sizes& sizes) {
    Answer answer;
    sqlite3_stmt* query = nullptr;
    const char* const text = "SELECT bytes, changed_s FROM files WHERE bytes BETWEEN ? AND ?";
    if (sqlite3_prepare_v2(database_, text, -1, &query, nullptr) != SQLITE_OK) fail();
    sqlite3_bind_int64(query, 1, sizes.least);
    sqlite3_bind_int64(query, 2, sizes.most);
    int step = SQLITE_ROW;
    while ((step = sqlite3_step(query)) == SQLITE_ROW)
      answer.add(sqlite3_column_int64(query, 0), sqlite3_column_int64(query, 1));
    sqlite3_finalize(query);
    if (step != SQLITE_DONE) fail();
    return answer;
  }
  /// Nothing of the file is in memory afterwards: neither the kernel's nor SQLite's.
  static void drop_page_cache(const std::string& file) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fdatasync(descriptor) != 0 ||
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) != 0)
      throw dunlin::Error(file + ": its page cache cannot be dropped");
    close(descriptor);
  }

 private:
  void run(const char* text) {
    if (sqlite3_exec(database_, text, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() { throw dunlin::Error(file_ + ": " + sqlite3_errmsg(database_)); }

  std::string file_;
  sqlite3* database_ = nullptr;
};

// --- members that compute ------------------------------------------------------------------------

class Selector {
 public:
  Selector(Member& member, std::size_t records) : member_(member) {
    for (std::size_t i = 0; i * kRecordsPerSegment < records; ++i) {
      const dunlin::Key named = member.find(name_of(i));
      dunlin::Key key{};
      while (key.value == 0) demand(member.space.get(named, dunlin::bytes_of(key.value)));
      keys_.push_back(key);
    }
  }
  Answer select(const Sizes& sizes) {
    Answer answer;
    for (const dunlin::Key key : keys_) {
      demand(member_.space.get(key, dunlin::bytes_of(*segment_)));
      for (std::size_t i = 0; i < segment_->records; ++i)
        if (const Record& record = segment_->all.at(i);
            record.bytes >= sizes.least && record.bytes <= sizes.most)
          answer.add(record.bytes, record.changed_s);
    }
    return answer;
  }

 private:
  Member& member_;
  std::vector<dunlin::Key> keys_;
  std::unique_ptr<Segment> segment_ = std::make_unique<Segment>();
};

double median_us(std::vector<std::uint64_t>& took_ns) {
  std::sort(took_ns.begin(), took_ns.end());
  return static_cast<double>(took_ns[took_ns.size() / 2]) / 1e3;
}

void compare(Member& member, std::size_t records, const std::string& file) {
  Selector selector(member, records);
  std::mt19937_64 random(member.fabric->rank());
  std::vector<std::uint64_t> by_segments_ns, by_sqlite_ns;
  Answer last;
  for (std::size_t i = 0; i < kQueries; ++i) {
    const auto least = static_cast<std::int64_t>(random() % 4096);
    const Sizes sizes{least, least + 20'000};
    Database::drop_page_cache(file);
    const std::uint64_t begin = member.fabric->now_ns();
    const Answer from_segments = selector.select(sizes);
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
  const std::size_t pool_bytes =
      (records / kRecordsPerSegment + 1) * (sizeof(Segment) + 4096) + (1 << 16);
  Member member(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])),
                static_cast<std::uint32_t>(std::atoi(argv[3])), pool_bytes);
  const std::string file = argv[5];
  if (member.fabric->rank() == 0) {
    const std::vector<Record> all = records_of("/usr", records);
    if (all.size() < records)
      throw dunlin::Error("/usr has only " + std::to_string(all.size()) + " files");
    std::filesystem::remove(file);
    Database(file).fill(all);
    share(member, all);
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
