#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "cluster/watch.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

/// What hosts, which are processes here, know of each other while they do their parts.
namespace dunlin::app {
namespace {

using test::contains;
using test::Parent;
using test::Process;

class OfiWatch : public testing::Test {
 protected:
  ~OfiWatch() override { std::filesystem::remove(secret_); }

  /// Hosts that do their parts as soon as they hear anything but "fail". They tell when all are
  /// there, and how they end.
  void start(std::uint32_t count) {
    std::ofstream(secret_) << "a secret of the tests of watching\n";
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
    for (std::uint32_t host = 0; host < count; ++host)
      hosts_.emplace_back(
          [this, count, host](Parent& parent) { return live(parent, count, host); });
    for (Process& host : hosts_) ASSERT_EQ(host.receive_line(), "all here");
  }

  std::vector<Process> hosts_;

 private:
  int live(Parent& parent, std::uint32_t count, std::uint32_t host) const {
    const Cluster cluster({{.network = "ofi",
                            .timeout_ms = 60'000,
                            .rendezvous = "unix:" + name_,
                            .secret_file = secret_},
                           count,
                           host});
    Watch watch(cluster, {.what = "watch-test"}, 60'000);
    watch.await_others();
    parent.send_line("all here");
    watch.guard([&] {
      std::array<pollfd, 2> news{
          {{watch.descriptor(), POLLIN, 0}, {parent.descriptor(), POLLIN, 0}}};
      while (news[1].revents == 0) {
        ASSERT_GE(poll(news.data(), news.size(), -1), 0);
        watch.demand_others();
      }
      if (parent.receive_line() == "fail") throw Error("out of luck");
    });
    parent.send_line("done");
    return 0;
  }

  std::string name_ = "test-watch-" + std::to_string(getpid());
  std::string secret_ = testing::TempDir() + name_;
};

TEST_F(OfiWatch, HostsMayEndTheirPartsOneAfterTheOther) {
  start(3);
  for (const std::size_t host : {1U, 0U, 2U}) {
    hosts_[host].send_line("go");
    EXPECT_EQ(hosts_[host].receive_line(), "done");
    EXPECT_EQ(hosts_[host].exit_code(), 0);
  }
}

TEST_F(OfiWatch, AllOthersHearWhyAHostGivesUp) {
  start(3);
  hosts_[1].send_line("fail");
  EXPECT_EQ(hosts_[1].receive_line(), "error: out of luck");
  for (const std::size_t host : {0U, 2U})
    EXPECT_EQ(hosts_[host].receive_line(), "error: host 1 gave up: out of luck");
}

TEST_F(OfiWatch, AllOthersHearWhichHostIsLost) {
  start(3);
  hosts_[0].kill();
  for (const std::size_t host : {1U, 2U})
    EXPECT_TRUE(contains(hosts_[host].receive_line(), "error: host 0 is lost: "));
}

/// The last one is in no further view: of two, the elder would go on.
TEST_F(OfiWatch, AHostThatIsLeftAloneSaysWhichOneIsLost) {
  start(2);
  hosts_[0].kill();
  EXPECT_TRUE(contains(hosts_[1].receive_line(), "error: host 0 is lost: "));
}

TEST_F(OfiWatch, AHostThatWasLetGoIsNotLostWhenItsNeighbourIs) {
  start(3);
  hosts_[0].send_line("go");
  EXPECT_EQ(hosts_[0].receive_line(), "done");
  hosts_[1].kill();
  EXPECT_TRUE(contains(hosts_[2].receive_line(), "error: host 1 is lost: "));
}

}  // namespace
}  // namespace dunlin::app
