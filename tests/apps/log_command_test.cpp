#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "command.hpp"
#include "log/log.hpp"
#include "log/posix_disk.hpp"
#include "multicast/journal.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"

/// `dunlin log`, of logs that somebody has open, and of damaged ones.
namespace dunlin::app {
namespace {

namespace fs = std::filesystem;
using test::contains;

struct Outcome {
  Status status;
  std::string output;
  std::string error;
};

Outcome run_log(std::vector<std::string> words) {
  words.insert(words.begin(), {"dunlin", "log"});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Status status = run(static_cast<int>(arguments.size()), arguments.data());
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

struct LogCommand : testing::Test {
  void SetUp() override { open(); }
  void open() {
    log = std::make_unique<log::Log>(disk->open(path),
                                     log::LogOptions{.name = "rack7/orders", .segment_bytes = 400});
  }
  void commit(int records) {
    for (; records > 0; --records) {
      log::Batch batch;
      batch.append(2, {},
                   std::as_bytes(std::span(std::string_view("a record of twenty-nine bytes"))));
      log->commit(batch);
    }
  }
  std::string spoil(const std::string& file, std::uint64_t offset) const {
    std::fstream bytes(path + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(offset));
    bytes.put('?');
    return file;
  }

  const test::OwnDirectory own;
  const std::string path = own / "log";
  const std::shared_ptr<log::Disk> disk = log::posix_disk();
  std::unique_ptr<log::Log> log;
};

TEST_F(LogCommand, InspectsALogThatIsInUse) {
  commit(5);
  const Outcome text = run_log({"inspect", path});
  EXPECT_EQ(text.status, Status::ok) << text.error;
  EXPECT_TRUE(contains(text.output, "log \"rack7/orders\" in " + path)) << text.output;
  EXPECT_TRUE(contains(text.output, "records  1 to 5\n")) << text.output;
  EXPECT_TRUE(contains(text.output, "0000000000000001.log  from record 1, ")) << text.output;
  const auto json = nlohmann::json::parse(run_log({"inspect", path, "--json"}).output);
  EXPECT_EQ(json["name"], "rack7/orders");
  EXPECT_EQ(json["first"], 1);
  EXPECT_EQ(json["next"], 6);
  EXPECT_EQ(json["synced_below"], 6);
  EXPECT_EQ(json["segments"].size(), log->segments().size());
  EXPECT_EQ(json["segments"][1]["first"], log->segments()[1].first);
  commit(1);
  EXPECT_TRUE(contains(run_log({"inspect", path}).output, "records  1 to 6\n"));
}

/// Opening a FIFO waits for its other end.
TEST_F(LogCommand, WaitsForNoPipeInPlaceOfAFile) {
  commit(5);
  log.reset();
  for (const std::string& name : {log::segment_name(1), std::string("mark")}) {
    const std::string file = path + "/" + name, kept = own / "kept";
    fs::rename(file, kept);
    for (const bool pipe : {true, false}) {
      ASSERT_EQ(pipe ? mkfifo(file.c_str(), 0600) : mkdir(file.c_str(), 0700), 0);
      for (const char* const part : {"inspect", "verify"}) {
        const Outcome outcome = run_log({part, path});
        EXPECT_EQ(outcome.status, Status::failed);
        EXPECT_TRUE(contains(outcome.error, name + "' is no regular file")) << outcome.error;
      }
      fs::remove(file);
    }
    fs::rename(kept, file);
  }
  EXPECT_EQ(run_log({"inspect", path}).status, Status::ok);
  const std::string pipe = own / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(run_log({"inspect", pipe}).status, Status::bad_input);
}

TEST_F(LogCommand, ChangesNothingOfALogWithATornTail) {
  commit(2);
  log.reset();
  const std::string file = path + "/" + log::segment_name(1);
  std::ofstream(file, std::ios::app | std::ios::binary) << "torn";
  const std::uintmax_t bytes = fs::file_size(file);
  for (const char* const part : {"inspect", "verify"}) {
    const Outcome outcome = run_log({part, path});
    EXPECT_EQ(outcome.status, Status::ok) << outcome.error;
    EXPECT_TRUE(contains(outcome.output, "record 3 is not complete")) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "4 bytes do not count")) << outcome.output;
  }
  EXPECT_EQ(fs::file_size(file), bytes);
}

TEST_F(LogCommand, VerifiesEveryRecord) {
  commit(9);
  const Outcome whole = run_log({"verify", path});
  EXPECT_EQ(whole.status, Status::ok) << whole.error;
  EXPECT_TRUE(contains(whole.output, "whole: all 9 records were read")) << whole.output;
  spoil(log::segment_name(1), 180);
  EXPECT_EQ(run_log({"inspect", path}).status, Status::ok) << "it reads the last file only";
  const Outcome damaged = run_log({"verify", path});
  EXPECT_EQ(damaged.status, Status::failed);
  EXPECT_TRUE(contains(damaged.error, "/0000000000000001.log' at offset 128: record 1 is damaged"))
      << damaged.error;
  const Outcome json = run_log({"verify", path, "--json"});
  EXPECT_EQ(json.status, Status::failed);
  EXPECT_EQ(nlohmann::json::parse(json.output)["whole"], false);
}

/// A member's log: a view, and messages of 100 bytes, each in a commit. One message has three
/// parts.
void write_messages(const std::shared_ptr<log::Disk>& disk, const std::string& path,
                    std::uint64_t count, bool with_state) {
  multicast::Journal journal(disk, path, "rack7/orders", 1'000);
  journal.begin_view(1, {"a", "b"});
  const std::string text(100, '.');
  for (std::uint64_t slot = 0; slot < count; ++slot) {
    journal.append(slot % 2 == 0 ? 0 : 1, {.message = std::as_bytes(std::span(text)),
                                           .slot = slot,
                                           .continues = slot == 40 || slot == 42});
    journal.finish();
  }
  if (!with_state) return;
  journal.store(10, 10, std::as_bytes(std::span(text)), 0);
  journal.finish();
}
std::uint64_t messages_in(const std::shared_ptr<log::Disk>& disk, const std::string& path) {
  multicast::Journal journal(disk, path, "rack7/orders");
  multicast::Replay replay = journal.replay();
  std::uint64_t messages = 0;
  while (replay.step([&](const multicast::Logged&) { ++messages; }, 100)) {
  }
  return messages;
}

TEST_F(LogCommand, TrimsTheLogOfAMemberThatIsStopped) {
  EXPECT_EQ(run_log({"trim", path, "--keep-bytes", "0"}).status, Status::could_not_run)
      << "it is in use";
  log.reset();
  const std::string members = own / "member";
  write_messages(disk, members, 60, false);
  EXPECT_EQ(messages_in(disk, members), 58U);
  for (const std::uint64_t kept : {50U, 18U, 16U, 5U}) {
    // Behind record 43 a message of the first sender has more to come; 116 bytes are a record's.
    const Outcome outcome =
        run_log({"trim", members, "--keep-bytes", std::to_string(kept * 116), "--json"});
    ASSERT_EQ(outcome.status, Status::ok) << outcome.error;
    const auto json = nlohmann::json::parse(outcome.output);
    EXPECT_EQ(json["given_up"], kept == 50 ? 11 : kept == 18 ? 32 : kept == 16 ? 2 : 11);
    EXPECT_GT(json["first"], 1);
    EXPECT_EQ(json["snapshot"]["below"], 62 - kept);
    EXPECT_EQ(messages_in(disk, members), kept == 50   ? 48
                                          : kept == 18 ? 17
                                                       : kept)
        << "one that ends behind the snapshot is whole";
  }
  EXPECT_TRUE(contains(run_log({"trim", members, "--keep-bytes", "1000"}).output,
                       "trimmed: 0 records were given up; 0 were removed, with their files"));
  EXPECT_EQ(run_log({"verify", members}).status, Status::ok);
}

TEST_F(LogCommand, GivesUpNoMessagesBehindAState) {
  log.reset();
  const std::string members = own / "member";
  write_messages(disk, members, 30, true);
  const Outcome outcome = run_log({"trim", members, "--keep-bytes", "0"});
  EXPECT_EQ(outcome.status, Status::could_not_run);
  EXPECT_TRUE(contains(outcome.error, "begins with a snapshot of its member's state"))
      << outcome.error;
  EXPECT_TRUE(
      contains(run_log({"inspect", members}).output, "snapshot instead of the records below 10, "));
}

TEST_F(LogCommand, SaysWhatIsNoLog) {
  EXPECT_EQ(run_log({"inspect", own / "none"}).status, Status::bad_input);
  fs::create_directory(own / "empty");
  const Outcome outcome = run_log({"verify", own / "empty"});
  EXPECT_EQ(outcome.status, Status::failed);
  EXPECT_TRUE(contains(outcome.error, "has no segments: it is no log")) << outcome.error;
}

}  // namespace
}  // namespace dunlin::app
