#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "apps/multicast_member.hpp"
#include "support/fresh_group.hpp"

namespace {

using dunlin::test::Member;
using dunlin::test::Words;

/// On one host: a network's addresses are sockets with the names of group and member.
TEST(OfiMulticastCommand, LetsMembersComeInWhereTheirDoorsAre) {
  const std::string group = dunlin::test::fresh_group();
  const std::string secret = testing::TempDir() + "dunlin-secret-" + group;
  std::ofstream(secret) << "one of sixteen bytes or more\n";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  const auto member = [&](const std::string& name, const Words& more) {
    Words words{"--group",
                group,
                "--name",
                name,
                "--fabric",
                "ofi",
                "--secret-file",
                secret,
                "--silence-timeout",
                "0",
                "--interval",
                "0",
                "--rate",
                "2000",
                "--digest-every",
                "500"};
    words.insert(words.end(), more.begin(), more.end());
    return Member(words);
  };
  Member a = member("a", {"--members", "a,b"});
  Member b = member("b", {"--members", "a,b"});
  for (Member* const one : {&a, &b}) one->hear_of("view 1: a, b");
  Member c = member("c", {"--join", "--doors", "unix:" + group + ".b,unix:" + group + ".a"});
  for (Member* const one : {&a, &b, &c}) one->hear_of("view 2: a, b, c; with c");
  c.hear_of("comes in behind ");
  c.hear_of("digest ");
  const auto& [count, digest] = *c.digests.begin();
  for (Member* const one : {&a, &b}) {
    one->hear_of("digest " + count + " ");
    EXPECT_EQ(one->digests[count], digest);
  }
  std::filesystem::remove(secret);
}

}  // namespace
