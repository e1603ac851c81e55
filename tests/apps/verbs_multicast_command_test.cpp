#include <cstdlib>

#include <gtest/gtest.h>

#include "apps/network_members.hpp"

namespace {

using dunlin::test::Member;
using dunlin::test::NetworkMembers;
using dunlin::test::Words;

/// In the emulated machine of tests/verbs, or where there are devices: on the first that is named.
TEST(VerbsMulticastCommand, HasEqualDigestsWhoeverIsKilledAndComes) {
  const char* const named = std::getenv("DUNLIN_VERBS_DEVICES");
  const std::string devices = named == nullptr ? "" : named;
  if (devices.empty()) GTEST_SKIP() << "DUNLIN_VERBS_DEVICES names no RDMA device";
  const NetworkMembers members("verbs");
  const auto member = [&](const std::string& name, Words more) {
    more.insert(more.end(), {"--device", devices.substr(0, devices.find(' '))});
    return Member(members.words(name, more));
  };
  const std::string address = "unix:" + members.group();
  dunlin::test::expect_equal_digests(
      [&](const std::string& name) {
        return member(name, {"--members", "a,b,c"});
      },
      [&](const std::string& name) {
        return member(name,
                      {"--join", "--contacts", address + ".a," + address + ".b," + address + ".c"});
      });
}

}  // namespace
