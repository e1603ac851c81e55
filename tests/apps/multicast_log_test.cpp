#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/multicast_member.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"

/// `dunlin multicast --log`: three members, all of which crash, and what a user does about a log.
namespace {

namespace fs = std::filesystem;

using dunlin::test::contains;
using dunlin::test::Member;
using dunlin::test::Words;

struct MulticastLog : testing::Test {
  void SetUp() override {
    std::vector<Member> members = start({"--count", "100", "--digest-every", "300"});
    for (Member& member : members) member.receive_line_of("digest 300 ");
    before = members[0].digests.at(300);
    // None of them may see another one die, and begin a view without it.
    for (Member& member : members) member.signal(SIGSTOP);
    for (Member& member : members) member.kill();
  }
  std::string log_of(const std::string& name) const { return directory / name; }
  std::vector<Member> start(const Words& more, const std::string& only = "",
                            const Words& only_more = {}) const {
    std::vector<Member> members;
    for (const std::string name : {"a", "b", "c"}) {
      Words words{
          "--group", group,        "--name", name,     "--members", "a,b,c", "--silence-timeout",
          "0",       "--interval", "0",      "--rate", "0",         "--log", log_of(name)};
      words.insert(words.end(), more.begin(), more.end());
      if (name == only) words.insert(words.end(), only_more.begin(), only_more.end());
      members.emplace_back(words);
    }
    return members;
  }
  void expect_to_go_on(std::vector<Member> members) const {
    for (Member& member : members) {
      const std::string line = member.receive_line_of("messages from the logs");
      EXPECT_TRUE(contains(line, "has 300 messages from the logs, digest " + before)) << line;
    }
    for (Member& member : members) {
      member.receive_line_of("leaves behind 303 messages");
      EXPECT_EQ(member.exit_code(), 0);
    }
  }

  const std::string group = dunlin::test::fresh_group();
  const dunlin::test::OwnDirectory directory;
  const Words one_more{"--count", "1", "--until", "303"};
  std::string before;
};

TEST_F(MulticastLog, HasWhatWasDeliveredBeforeAllCrashed) { expect_to_go_on(start(one_more)); }

TEST_F(MulticastLog, ThatIsDamagedIsCopiedFromAnotherMemberAsTheErrorSays) {
  for (const auto& file : fs::directory_iterator(log_of("a")))
    if (file.path().extension() == ".log") fs::resize_file(file.path(), 100);
  {
    std::vector<Member> members = start(one_more);
    const std::string error = members[0].receive_line_of("rm -r");
    EXPECT_TRUE(
        contains(error, "rm -r '" + log_of("a") + "' && cp -r ITS_DIRECTORY '" + log_of("a") + "'"))
        << error;
    EXPECT_EQ(members[0].exit_code(), 3);
    for (Member& member : members) member.kill();
  }
  fs::remove_all(log_of("a"));
  fs::copy(log_of("b"), log_of("a"), fs::copy_options::recursive);
  expect_to_go_on(start(one_more));
}

TEST_F(MulticastLog, ThatWasEmptiedIsWaitedForUntilAMemberGivesItUp) {
  fs::remove_all(log_of("a"));
  {
    std::vector<Member> members = start(one_more);
    std::string errors;  // the last member may only see that the others have left
    for (Member& member : members) {
      errors += member.receive_all_lines();
      EXPECT_EQ(member.exit_code(), 3);
    }
    EXPECT_TRUE(contains(errors, "'a' (here with an empty log)")) << errors;
    EXPECT_TRUE(contains(errors, "dunlin multicast --log-given-up")) << errors;
  }
  expect_to_go_on(start(one_more, "c", {"--log-given-up", "a"}));
}

/// As systemd stops them. Nobody reads what they say meanwhile, so it is little: some 280 lines fit
/// into a socket, and a member that waits for room for the next one does not see the signal.
TEST(MulticastLogByQuorum, IsStoppedByTermSignalsOneAfterTheOtherWithStatusZero) {
  const std::string group = dunlin::test::fresh_group();
  const dunlin::test::OwnDirectory directory;
  std::vector<Member> members;
  for (const std::string name : {"a", "b", "c"})
    members.emplace_back(Words{"--group", group, "--name", name, "--members", "a,b,c",
                               "--silence-timeout", "0", "--interval", "0", "--log",
                               std::string(directory / name), "--log-quorum", "--digest-every",
                               "500"});
  for (Member& member : members) member.receive_line_of("digest 500 ");
  for (const std::size_t goes : {0UL, 1UL}) {
    members[goes].signal(SIGTERM);
    EXPECT_EQ(members[goes].exit_code(), 0);
  }
  EXPECT_EQ(members[2].exit_code(), 0);  // it cannot go on alone, and ends by itself
  EXPECT_TRUE(contains(members[2].receive_all_lines(), "the other members have left"));
}

}  // namespace
