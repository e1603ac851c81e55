#pragma once

#include <string>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "selecting.hpp"

/// The same catalogue in a SQLite file, of which the page cache can be made to hold nothing.
namespace services {

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

}  // namespace services
