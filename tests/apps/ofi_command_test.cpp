#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/cluster.hpp"
#include "command.hpp"
#include "fabric/private_file.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

namespace {

using dunlin::app::Status;
using dunlin::test::contains;

std::string scratch(const std::string& name) {
  return testing::TempDir() + "dunlin-" + name + "-" + std::to_string(getpid());
}

/// A file that nobody else may read.
void write_privately(const std::string& file, const std::string& content) {
  std::ofstream(file) << content;
  std::filesystem::permissions(
      file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

Status run_routing(std::vector<const char*> words) {
  words.insert(words.begin(), {"dunlin", "routing", "--topology", "hub-ring:4", "--fabric", "ofi"});
  return dunlin::app::run(static_cast<int>(words.size()), words.data());
}

TEST(OfiCommand, SaysWhichNetworkItHasChosenAndWhy) {
  const std::string file = scratch("run.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_routing({"--events", "2", "--json", file.c_str()}), Status::ok);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(said, "\n  network: libfabric tcp on lo, address 127.0.0.1 ("));
  EXPECT_TRUE(contains(said, "All 4 routers agree with Boost.Graph"));
  const auto run = nlohmann::json::parse(std::ifstream(file)).at("runs").at(0);
  EXPECT_EQ(run["fabric"], "ofi");
  EXPECT_EQ(run["hosts"], 1);
  EXPECT_TRUE(contains(run["network"], "libfabric tcp"));
  std::filesystem::remove(file);
}

TEST(OfiCommand, RefusesMoreHostsThanRoutersAndKeepsTheSecret) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_routing({"--rendezvous", "unix:x", "--hosts", "5", "--host", "0", "--secret-file",
                         file.c_str()}),
            Status::bad_input);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: --hosts 5: hub-ring:4 has 4 routers, and each host needs one\n");
  std::filesystem::remove(file);
}

/// What a process with these variables takes for its place.
std::string place_by(const std::vector<std::pair<std::string, std::string>>& variables) {
  dunlin::test::Process process([&](dunlin::test::Parent& parent) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    try {
      const dunlin::app::Cluster cluster({{.network = "ofi"}});
      parent.send_line(std::to_string(cluster.host()) + " of " + std::to_string(cluster.hosts()));
    } catch (const dunlin::app::BadInput& error) {
      parent.send_line(error.what());
    }
    return 0;
  });
  return process.receive_line();
}

TEST(OfiCommand, TakesItsHostFromItsLauncher) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\n");
  EXPECT_EQ(place_by({{"DUNLIN_LAUNCHER", "dunlin"}}), "0 of 1");
  EXPECT_EQ(place_by({{"DUNLIN_MEMBERS", "3"},
                      {"DUNLIN_RANK", "2"},
                      {"DUNLIN_RENDEZVOUS", "unix:x"},
                      {"DUNLIN_SECRET_FILE", file}}),
            "2 of 3");
  EXPECT_TRUE(contains(
      place_by(
          {{"DUNLIN_MEMBERS", "3"}, {"DUNLIN_RENDEZVOUS", "unix:x"}, {"DUNLIN_SECRET_FILE", file}}),
      "DUNLIN_RANK is missing"));
  EXPECT_TRUE(contains(place_by({{"DUNLIN_MEMBERS", "3"}, {"DUNLIN_RANK", "3"}}),
                       "the environment contradicts itself"));
  EXPECT_EQ(place_by({{"DUNLIN_MEMBERS", "257"},
                      {"DUNLIN_RANK", "2"},
                      {"DUNLIN_RENDEZVOUS", "unix:x"},
                      {"DUNLIN_SECRET_FILE", file}}),
            "257 hosts: at most 256 can watch each other, as members of one view");
  for (const char* alone : {"DUNLIN_RANK", "DUNLIN_RENDEZVOUS"}) {
    EXPECT_TRUE(contains(place_by({{alone, "0"}, {"DUNLIN_SECRET_FILE", file}}), "DUNLIN_MEMBERS"))
        << "half a place is none, and no run on this host alone";
  }
  std::filesystem::remove(file);
}

/// What such a member is refused with, before it goes anywhere.
std::string refusal_of(dunlin::app::FabricOptions options,
                       const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\n");
  options.network = "ofi";
  options.secret_file = file;
  options.hosts = 2;
  options.host = 1;
  if (options.rendezvous.empty()) options.rendezvous = "unix:x";
  dunlin::test::Process process([&](dunlin::test::Parent& parent) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    try {
      const dunlin::app::Cluster cluster(options);
      parent.send_line("nothing");
    } catch (const dunlin::app::BadInput& error) {
      parent.send_line(error.what());
    }
    return 0;
  });
  std::string said = process.receive_line();
  std::filesystem::remove(file);
  return said;
}

TEST(OfiCommand, RefusesBeforehandWhatCannotWork) {
  EXPECT_EQ(refusal_of({}), "nothing");
  EXPECT_TRUE(
      contains(refusal_of({{.rendezvous = "10.0.0.1"}}),
               "--rendezvous: the rendezvous address '10.0.0.1' is not possible: it has no"));
  EXPECT_TRUE(contains(refusal_of({{.rendezvous = "[::]:7700"}}), "every machine has it"));
  EXPECT_TRUE(contains(refusal_of({{.address = "10.0.0"}}), "--address \"10.0.0\": not an"));
  EXPECT_TRUE(
      contains(refusal_of({{.address = "eth0"}}), "--address \"eth0\": not an address such"));
  EXPECT_TRUE(contains(refusal_of({{.address = "fe80::7"}}), "say which, as in fe80::7%eth0"));
  const std::string foreign = refusal_of({{.address = "192.0.2.7"}});  // nobody's: RFC 5737
  EXPECT_TRUE(contains(foreign, "--address \"192.0.2.7\": not an address of this host, which has"));
  EXPECT_TRUE(contains(foreign, "127.0.0.1 (lo)"));
  EXPECT_TRUE(contains(refusal_of({}, {{"DUNLIN_ADDRESS", "192.0.2.7"}}), "DUNLIN_ADDRESS \"192"));
  EXPECT_EQ(refusal_of({{.address = "127.0.0.1"}}), "nothing");
}

TEST(OfiCommand, RefusesHalfOfTlsBeforehand) {
  EXPECT_TRUE(contains(refusal_of({}, {{"DUNLIN_TLS_CA", "/ca.pem"}}),
                       "DUNLIN_TLS_CERTIFICATE is not set, nor is DUNLIN_TLS_KEY"));
  EXPECT_TRUE(contains(refusal_of({}, {{"DUNLIN_TLS_CA", "/nodir/ca.pem"},
                                       {"DUNLIN_TLS_CERTIFICATE", "/nodir/one.pem"},
                                       {"DUNLIN_TLS_KEY", "/nodir/one.key"}}),
                       "/nodir/"));
}

/// Host 0 of a group of two, and a host of a group of three.
TEST(OfiCommand, TellsAllHostsThatTheirNumbersDiffer) {
  const std::string name = "unix:" + std::to_string(getpid()) + "-numbers";
  const auto host = [&name](std::uint32_t hosts, std::uint32_t which) {
    return [&name, hosts, which](dunlin::test::Parent& parent) {
      try {
        dunlin::app::agree({.hosts = hosts,
                            .host = which,
                            .rendezvous = name,
                            .secret = "one of sixteen bytes or more",
                            .tls = {},
                            .timeout_ms = 60'000},
                           {.what = "test"});
      } catch (const dunlin::app::BadInput& error) {
        parent.send_line(error.what());
      }
      return 0;
    };
  };
  dunlin::test::Process two(host(2, 0));
  dunlin::test::Process three(host(3, 1));
  for (dunlin::test::Process* one : {&two, &three}) {
    const std::string said = one->receive_line();
    EXPECT_TRUE(contains(said, "the host expects "));
    EXPECT_TRUE(contains(said, " 2"));
    EXPECT_TRUE(contains(said, " 3"));
    EXPECT_TRUE(contains(said, "--hosts"));
  }
}

TEST(Secret, IsAFileWithoutTheLineEndBehindIt) {
  const std::string file = scratch("secret");
  write_privately(file, "one of sixteen bytes or more\r\n\n");
  EXPECT_EQ(dunlin::read_secret(file, "--secret-file"), "one of sixteen bytes or more");
  write_privately(file, "tiny\n");
  const std::string said =
      dunlin::test::what_is_thrown_by([&] { (void)dunlin::read_secret(file, "X"); });
  EXPECT_TRUE(contains(said, "a secret has 16 to 4096 bytes"));
  EXPECT_EQ(said.find("tiny"), std::string::npos) << "it is not for all to see";
  std::filesystem::remove(file);
  EXPECT_TRUE(
      contains(dunlin::test::what_is_thrown_by([&] { (void)dunlin::read_secret(file, "X"); }),
               "No such file or directory"));
}

TEST(Secret, IsAnotherOneEachTime) {
  EXPECT_NE(dunlin::random_secret(), dunlin::random_secret());
  EXPECT_EQ(dunlin::random_secret().size(), 64U);
}

}  // namespace
