#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/multicast_member.hpp"
#include "multicast/running_digest.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"

/// `dunlin multicast`, each member a process.
namespace {

using dunlin::app::Status;
using dunlin::test::contains;
using dunlin::test::Member;
using dunlin::test::run_multicast;
using dunlin::test::Words;

struct MulticastCommand : testing::Test {
  const std::string group = dunlin::test::fresh_group();

  Words founder(const std::string& name, const Words& more) const {
    return with({"--group", group, "--name", name, "--members", "a,b,c"}, more);
  }
  Words comer(const std::string& name, const Words& more) const {
    return with({"--group", group, "--name", name, "--join"}, more);
  }

 private:
  static Words with(Words words, const Words& more) {
    words.insert(words.end(), {"--silence-timeout", "0", "--interval", "0"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(MulticastCommand, HasEqualDigestsWhoeverIsKilledAndComes) {
  const Words load{"--rate", "20000", "--digest-every", "500"};
  dunlin::test::expect_equal_digests(
      [&](const std::string& name) { return Member(founder(name, load)); },
      [&](const std::string& name) { return Member(comer(name, load)); });
}

TEST_F(MulticastCommand, SendsTheLinesOfStandardInput) {
  const Words lines{"--lines", "--until", "3"};
  std::vector<Member> members;
  for (const char* name : {"a", "b", "c"}) members.emplace_back(founder(name, lines));
  std::string order;
  members[0].send_line("one\033[1m");
  order += members[0].receive_line_of("says").substr(3);
  members[1].send_line("two");
  order += members[0].receive_line_of("says").substr(3);
  members[2].send_line("three");
  order += members[0].receive_line_of("says").substr(3);
  EXPECT_EQ(order, "a says one?[1mb says twoc says three");
}

TEST_F(MulticastCommand, LeavesWhenSoManyHaveBeenDelivered) {
  const Words course{"--rate", "0", "--count", "1000", "--until", "3000", "--digest-every", "1000"};
  std::vector<Member> members;
  for (const char* name : {"a", "b", "c"}) members.emplace_back(founder(name, course));
  std::string digest;
  for (Member& member : members) {
    const std::string last = member.receive_line_of("leaves behind 3000 messages").substr(3);
    if (digest.empty()) digest = last;
    EXPECT_EQ(last, digest);
  }
  for (Member& member : members) EXPECT_EQ(member.exit_code(), 0);
}

struct Refusal {
  Words words;
  const char* complaint;
};

TEST(MulticastCommandLine, RefusesWhatCannotWork) {
  const Refusal refusals[] = {
      {{"--name", "a", "--members", "a"}, "--group is required"},
      {{"--group", "g", "--name", "a"}, "--members is missing"},
      {{"--group", "g", "--name", "a", "--members", "b,c"}, "--name a: not one of --members b,c"},
      {{"--group", "g", "--name", "a", "--members", "a,b,b"}, "--members: b is there twice"},
      {{"--group", "g", "--name", "a", "--members", "a,,b"},
       "--members \"a,,b\": name 2 is empty; give each one, with a comma between two of them"},
      {{"--group", "g", "--name", "a", "--members", "a,"}, "--members \"a,\": name 2 is empty"},
      {{"--group", "g", "--name", "a", "--members", ",a"}, "--members \",a\": name 1 is empty"},
      {{"--group", "g", "--name", "a", "--members", ""}, "--members \"\": name 1 is empty"},
      {{"--group", "g", "--name", "a", "--join", "--contacts", "unix:x,"}, "address 2 is empty"},
      {{"--group", "g", "--name", "a", "--members", "a", "--join"}, "--join and --members"},
      {{"--group", "a b", "--name", "a", "--members", "a"}, "--group \"a b\": "},
      {{"--group", "g", "--name", "a/b", "--join"}, "--name \"a/b\": "},
      {{"--group", "g", "--name", "a", "--join", "--contacts", "unix:x"},
       "--listen and --contacts: on one"},
      {{"--group", "g", "--name", "a", "--join", "--fabric", "sim"}, "dunlin sim multicast"},
      {{"--group", "g", "--name", "a", "--join", "--fabric", "ofi"}, "--contacts is missing"},
      {{"--group", "g", "--name", "a", "--members", "a", "--fabric", "ofi"},
       "--secret-file is missing"},
      {{"--group", "g", "--name", "a", "--members", "a", "--fabric", "ofi", "--rendezvous", "h:1"},
       "--listen is missing"},
      {{"--group", "g", "--name", "a", "--members", "a", "--fabric", "ofi", "--listen", "h:1"},
       "--rendezvous is missing"},
      {{"--group", "g", "--name", "a", "--members", "a", "--lines", "--rate", "7"},
       "--rate: with --lines"},
      {{"--group", "g", "--name", "a", "--members", "a", "--bytes", "0"}, "--bytes 0: 1 to"},
      {{"--group", "g", "--name", "a", "--members", "a", "--count", "-1"},
       "must be a whole number"},
      {{"--group", "g", "--name", "a", "--members", "a", "--rate", "nan"},
       "must be a number of messages a second"},
      {{"--group", "g", "--name", "a", "--members", "a", "--digest-every", "0"}, "at least 1"},
      {{"--group", "g", "--name", "a", "--members", "a", "--ring-bytes", "5000"},
       "--ring-bytes 5000: must be a power of two from 1024 to 1073741824"},
      {{"--group", "g", "--name", "a", "--members", "a", "--log-given-up", "b"},
       "--log-given-up: only durable messages have logs"},
      {{"--group", "g", "--name", "a", "--members", "a", "--log", "l", "--log-given-up", "b/c"},
       "--log-given-up \"b/c\": "},
  };
  for (const Refusal& refusal : refusals) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_multicast(refusal.words), Status::bad_input) << refusal.complaint;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(contains(said, refusal.complaint)) << said;
  }
}

TEST(RunningDigest, DiffersWithEachMessageSenderAndPlace) {
  const auto digest_of = [](const std::vector<std::pair<std::string, std::string>>& messages) {
    dunlin::app::cast::RunningDigest so_far;
    for (const auto& [sender, text] : messages) so_far.add(sender, std::as_bytes(std::span(text)));
    EXPECT_EQ(so_far.messages, messages.size());
    return so_far.digest;
  };
  const std::vector<std::vector<std::pair<std::string, std::string>>> histories{
      {},
      {{"a", ""}},
      {{"", "a"}},
      {{"a", "x"}, {"b", "y"}},
      {{"b", "y"}, {"a", "x"}},
      {{"a", "xb"}, {"", "y"}},
      {{"a", "12345678"}},
      {{"a", std::string("12345678\0", 9)}},
      {{"a", "123456789"}},
  };
  std::map<std::uint64_t, std::size_t> seen;
  for (const auto& history : histories) {
    EXPECT_EQ(digest_of(history), digest_of(history));
    ++seen[digest_of(history)];
  }
  EXPECT_EQ(seen.size(), histories.size());
}

}  // namespace
