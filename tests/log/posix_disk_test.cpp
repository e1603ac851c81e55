#include "log/posix_disk.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/group_commit.hpp"
#include "log/scribe.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/private_shm.hpp"
#include "support/process.hpp"

/// Real files, and a thread that syncs them.
namespace dunlin::log {
namespace {

/// What fsync() was asked for, which is all that tells whether it was.
struct Syncs {
  std::vector<std::filesystem::path> paths;
  bool fail = false;
  [[nodiscard]] bool take(const std::filesystem::path& path) {
    const bool found = std::ranges::count(paths, path) > 0;
    paths.clear();
    return found;
  }
};
Syncs syncs;

}  // namespace
}  // namespace dunlin::log

/// In place of the library's, for this program.
extern "C" int fsync(int file) {
  dunlin::log::Syncs& syncs = dunlin::log::syncs;
  syncs.paths.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)));
  if (!syncs.fail) return static_cast<int>(syscall(SYS_fsync, file));
  errno = EIO;
  return -1;
}

namespace dunlin::log {
namespace {

using test::contains;
using test::what_is_thrown_by;

const LogOptions kOptions{.name = "group/test", .segment_bytes = 10'000};

struct PosixDisk : testing::Test {
  test::OwnDirectory directory;
  std::shared_ptr<Disk> disk = posix_disk();
  std::string path = directory / "log";
};

Batch batch_of(std::size_t records, std::size_t bytes) {
  Batch batch;
  for (std::size_t i = 0; i < records; ++i)
    batch.append(static_cast<std::uint32_t>(bytes), {}, Bytes(bytes, static_cast<std::byte>(i)));
  return batch;
}

TEST_F(PosixDisk, KeepsALog) {
  {
    Log log(disk->open(path), kOptions);
    for (int i = 0; i < 30; ++i) {
      Batch batch = batch_of(3, 500);
      log.commit(batch);
    }
  }
  Log log(disk->open(path + "/"), kOptions);
  EXPECT_TRUE(log.notices().empty());
  EXPECT_EQ(read_all(log).size(), 90);
  log.truncate_from(50);
  log.store({.number = 30, .from = 30});
  log.trim_before(30);
  EXPECT_EQ(log.next(), 50);
  EXPECT_GT(log.first(), 1);
  EXPECT_EQ(read_all(log).size(), 50 - log.first());
}

TEST_F(PosixDisk, IsNotWaitedForByWhoAppends) {
  Log log(disk->open(path), kOptions);
  GroupCommit commit(*disk, log);
  std::uint64_t last = 1;
  while (commit.durable() < 2'000) {
    if (commit.next() < 2'000) commit.append(4, {}, bytes_of("text"));
    commit.poll();
    ASSERT_GE(commit.durable(), last);
    last = commit.durable();
    if (commit.next() == 2'000) std::this_thread::yield();
  }
  EXPECT_LT(commit.commits(), 1'999) << "together, while the disk was busy";
  commit.append(4, {}, bytes_of("text"));
  commit.finish();
  EXPECT_EQ(commit.durable(), 2'001);
  EXPECT_EQ(read_all(log).size(), 2'000);
}

TEST_F(PosixDisk, IsLeftWhileACommitIsUnderWay) {
  for (int i = 0; i < 20; ++i) {
    Log log(disk->open(path), kOptions);
    GroupCommit commit(*disk, log);
    for (int j = 0; j < 5; ++j) commit.append(4, {}, bytes_of("text"));
    commit.poll();
  }
  Log log(disk->open(path), kOptions);
  EXPECT_EQ(log.next(), 101) << "what was started is done";
}

/// By LOG-D6 one process at a time has the directory open, and once.
TEST_F(PosixDisk, IsUsedByOneLogAtATime) {
  const Log log(disk->open(path), kOptions);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { (void)disk->open(path); }), path + "' is in use"));
  test::Process other([&](test::Parent&) {
    (void)disk->open(path);
    return 0;
  });
  EXPECT_TRUE(contains(other.receive_line(), "is in use by another log"));
}

/// Or a crash of the machine would take the log with it.
TEST_F(PosixDisk, SyncsTheDirectoryAboveTheOneThatItMakes) {
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  (void)disk->open(path);
  EXPECT_TRUE(syncs.take(above));
  (void)disk->open(path);
  EXPECT_FALSE(syncs.take(above)) << "it is known to be there";
}

/// The process that made the directory died before it had synced the one above.
TEST_F(PosixDisk, SyncsTheDirectoryAboveOneThatSomebodyMadeAndDidNotSync) {
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  syncs.fail = true;
  EXPECT_TRUE(contains(what_is_thrown_by([&] { (void)disk->open(path); }),
                       above.string() + "': syncing this directory to the disk failed"));
  EXPECT_TRUE(std::filesystem::is_empty(path)) << "the lock would say that it is known to be there";
  syncs = {};
  (void)disk->open(path + "/");
  EXPECT_TRUE(syncs.take(above));
}

TEST_F(PosixDisk, SaysWhatIsNoDirectory) {
  EXPECT_TRUE(contains(what_is_thrown_by([&] { (void)disk->open(directory / "no/log"); }),
                       "no/log': making this directory failed: No such file or directory"));
  std::ofstream(path) << "text";
  EXPECT_TRUE(contains(what_is_thrown_by([&] { (void)disk->open(path); }),
                       path + "': opening this directory failed: Not a directory"));
}

TEST_F(PosixDisk, SaysThatItMayNotWrite) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  { const Log log(disk->open(path), kOptions); }
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const std::string file = path + "/" + segment_name(1);
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { const Log log(disk->open(path), kOptions); }),
                       "Permission denied; give this user the right"));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_F(PosixDisk, SaysWhereAFileMayGrowNoMore) {
  test::Process writer([&](test::Parent& parent) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5'000, 5'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Log log(disk->open(path), {.name = "group/test"});
    parent.send_line(what_is_thrown_by([&] {
      for (;;) {
        Batch batch = batch_of(1, 460);
        log.commit(batch);
      }
    }));
    return static_cast<int>(log.next());
  });
  const std::string error = writer.receive_line();
  // 128 bytes of header, 9 records of 504, and what fits of the tenth.
  EXPECT_TRUE(contains(
      error, segment_name(1) + "': writing 168 bytes at offset 5000 failed: File too large"));
  EXPECT_TRUE(contains(error, "record 10 could not be made durable"));
  EXPECT_EQ(writer.exit_code(), 10);
  Log log(disk->open(path), {.name = "group/test"});
  ASSERT_EQ(log.notices().size(), 1);
  EXPECT_TRUE(contains(log.notices()[0], "at offset 4664: record 10 was not complete"));
  EXPECT_EQ(log.next(), 10);
}

/// A file system of 256 KB.
TEST_F(PosixDisk, SaysWhereItIsFull) {
  test::Process writer([&](test::Parent& parent) {
    if (const auto why_not = test::mount_private_shm(256 << 10)) {
      parent.send_line("skip: " + *why_not);
      return 0;
    }
    std::uint64_t acknowledged = 0;
    {
      Log log(disk->open("/dev/shm/log"), {.name = "group/test"});
      parent.send_line(what_is_thrown_by([&] {
        for (;; acknowledged = log.next()) {
          Batch batch = batch_of(3, 1'000);
          log.commit(batch);
        }
      }));
    }
    Log log(disk->open("/dev/shm/log"), {.name = "group/test"});
    parent.send_line(log.next() >= acknowledged && log.next() < acknowledged + 3 ? "all"
                                                                                 : "not all");
    return 0;
  });
  const std::string error = writer.receive_line();
  if (error.starts_with("skip")) GTEST_SKIP() << error;
  EXPECT_TRUE(contains(error, "/dev/shm/log/" + segment_name(1) + "': writing "));
  EXPECT_TRUE(contains(error, "failed: No space left on device; make room on this file system"));
  EXPECT_EQ(writer.receive_line(), "all");
}

TEST_F(PosixDisk, TellsWhatAKillLeft) {
  test::Process writer([&](test::Parent& parent) {
    Log log(disk->open(path), kOptions);
    for (std::uint64_t i = 0;; ++i) {
      Batch batch = batch_of(1 + i % 7, 300);
      log.commit(batch);
      if (i % 64 == 63) parent.send_line(std::to_string(log.next()));
    }
    return 0;
  });
  std::uint64_t acknowledged = 0;
  for (int i = 0; i < 3; ++i) acknowledged = std::stoull(writer.receive_line());
  writer.kill();
  Log log(disk->open(path), kOptions);
  EXPECT_GE(log.next(), acknowledged);
  EXPECT_EQ(read_all(log).size(), log.next() - 1);
}

/// A child has none of the threads of its parent: nobody there waits for one, and nothing is
/// written.
TEST_F(PosixDisk, IsLeftInAForkedChild) {
  Log log(disk->open(path), kOptions);
  auto commit = std::make_unique<GroupCommit>(*disk, log);
  for (int i = 0; i < 20; ++i) {
    commit->append(4, {}, bytes_of("text"));
    commit->poll();
    test::Process child([&](test::Parent& parent) {
      commit->append(4, {}, bytes_of("of the child"));
      commit->finish();
      parent.send_line(commit->failure());
      commit->wake(nullptr);
      commit.reset();
      return 0;
    });
    EXPECT_TRUE(contains(child.receive_line(), "was forked by the one that has the log open"));
    EXPECT_EQ(child.exit_code(), 0);
  }
  commit->finish();
  EXPECT_EQ(commit->failure(), "");
  EXPECT_EQ(read_all(log).size(), 20);
}

}  // namespace
}  // namespace dunlin::log
