#include <gtest/gtest.h>

#include "apps/network_members.hpp"
#include "support/hosts.hpp"

namespace {

using dunlin::app::Status;
using dunlin::test::compare;
using dunlin::test::Hosts;
using dunlin::test::Member;
using dunlin::test::NetworkMembers;
using dunlin::test::Words;

/// On one host: a network's addresses are sockets with the names of group and member.
TEST(OfiMulticastCommand, LetsMembersComeInWhereTheirListenersAre) {
  const NetworkMembers members("ofi");
  const auto member = [&](const std::string& name, const Words& more) {
    return Member(members.words(name, more));
  };
  Member a = member("a", {"--members", "a,b"});
  Member b = member("b", {"--members", "a,b"});
  for (Member* const one : {&a, &b}) one->receive_line_of("view 1: a, b");
  const std::string address = "unix:" + members.group();
  Member c = member("c", {"--join", "--contacts", address + ".b," + address + ".a"});
  for (Member* const one : {&a, &b, &c}) one->receive_line_of("view 2: a, b, c; with c");
  c.receive_line_of("comes in behind ");
  c.receive_line_of("digest ");
  const auto& [count, digest] = *c.digests.begin();
  for (Member* const one : {&a, &b}) {
    one->receive_line_of("digest " + std::to_string(count) + " ");
    EXPECT_EQ(one->digests[count], digest);
  }
}

/// The leader's cable is pulled: it must not go on alone, though it works, and the others do.
TEST(OfiMulticastCommand, StopsOnAHostWhoseCableIsPulledAndGoesOnOnTheOthers) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(3);
  const NetworkMembers members("ofi", "4");
  const auto on = [&](unsigned host, const std::string& name) {
    return Member(
        members.words(name, {"--members", "a,b,c", "--rendezvous", Hosts::address(0) + ":7700",
                             "--listen", Hosts::address(host) + ":7701"}),
        [&hosts, host] { hosts.enter(host); });
  };
  Member a = on(0, "a");
  Member b = on(1, "b");
  Member c = on(2, "c");
  for (Member* const one : {&a, &b, &c}) one->receive_line_of("digest 1000 ");
  hosts.cut(0);
  a.receive_line_of("too few members of view 1 are left to go on");
  EXPECT_EQ(a.exit_code(), static_cast<int>(Status::could_not_run));
  for (Member* const one : {&b, &c}) one->receive_line_of("view 2: b, c; without a");
  for (int i = 0; i < 4; ++i) c.receive_line_of("digest ");
  ASSERT_FALSE(HasFailure()) << b.receive_line_of("without c");  // which may not say it any more
  b.receive_line_of("digest " + std::to_string(c.digests.rbegin()->first) + " ");
  EXPECT_GE(compare(b, c), 4U);
  EXPECT_GE(compare(a, c), 2U) << "what it delivered, the others have delivered, too";
}

/// One comes in on the host of the one that was killed, where the founders had met.
TEST(OfiMulticastCommand, HasEqualDigestsOnThreeHostsWhoeverIsKilledAndComes) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(3);
  const NetworkMembers members("ofi");
  const auto address = [](unsigned host) { return Hosts::address(host) + ":7701"; };
  const auto on = [&](unsigned host, const std::string& name, const Words& more) {
    Words words = members.words(name, more);
    words.insert(words.end(), {"--listen", address(host)});
    return Member(words, [&hosts, host] { hosts.enter(host); });
  };
  const std::string addresses = address(0) + "," + address(1) + "," + address(2);
  dunlin::test::expect_equal_digests(
      [&](const std::string& name) {
        return on(static_cast<unsigned>(name[0] - 'a'), name,
                  {"--members", "a,b,c", "--rendezvous", Hosts::address(0) + ":7700"});
      },
      [&](const std::string& name) {
        return on(0, name, {"--join", "--contacts", addresses});
      });
}

}  // namespace
