#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "command.hpp"
#include "networks.hpp"
#include "routing/run.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

/// Routers over libfabric, on one host and on several. Hosts are processes here, each of which does
/// what the command does on its host.
namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;
using dunlin::app::BadInput;
using dunlin::app::Cluster;
using dunlin::test::contains;
using dunlin::test::Parent;
using dunlin::test::Process;

constexpr std::uint32_t kHosts = 3;

/// The children of a process in the order in which they were forked.
std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

std::size_t count_children() { return children_of(getpid()).size(); }

pid_t watcher_of(pid_t host) { return children_of(host).at(0); }
pid_t first_router_of(pid_t host) { return children_of(host).at(1); }

/// Each host's part of a run; `events` may differ from host to host.
class Hosts {
 public:
  using Events = std::function<std::vector<LinkEvent>(std::uint32_t host, const Topology&)>;
  /// What a host does when all have come, before its routers join.
  using Accident = std::function<void(std::uint32_t host)>;

  Hosts(
      const Topology& net, const Events& events, Accident accident = [](std::uint32_t) {})
      : accident_(std::move(accident)) {
    std::ofstream(secret_) << "a secret of the tests of routing\n";
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      hosts_.emplace_back([this, &net, events, host](Parent& parent) {
        return take_part(parent, net, events(host, net), host);
      });
    }
  }
  ~Hosts() { std::filesystem::remove(secret_); }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  Process& operator[](std::size_t host) { return hosts_[host]; }
  /// Skips what comes before.
  void await(std::size_t host, const std::string& line) {
    std::string heard;
    while ((heard = hosts_[host].receive_line()) != line && !heard.empty()) {
    }
    ASSERT_EQ(heard, line);
  }
  /// Its last line.
  std::string end_of(std::size_t host) {
    const std::string all = hosts_[host].receive_all_lines();
    const std::size_t end = all.find_last_not_of('\n') + 1;
    const std::size_t before = all.rfind('\n', end == 0 ? 0 : end - 1);
    return all.substr(before == std::string::npos ? 0 : before + 1,
                      end - (before == std::string::npos ? 0 : before + 1));
  }

 private:
  [[nodiscard]] Cluster cluster(std::uint32_t host) const {
    return Cluster({{.network = "ofi",
                     .timeout_ms = 60'000,
                     .rendezvous = "unix:" + rendezvous_,
                     .secret_file = secret_},
                    kHosts,
                    host});
  }

  int take_part(Parent& parent, const Topology& net, const std::vector<LinkEvent>& events,
                std::uint32_t host) const {
    try {
      const std::vector<Plan> plans{Plan(net, events, kHosts)};
      const Plan& plan = plans.front();
      const Cluster here = cluster(host);
      const auto watch = agree(plans, here);
      watch->guard([&] {
        accident_(host);
        host == 0 ? play(parent, plan, here, events, *watch)
                  : serve_on_processes(plan, here, {}, watch.get());
      });
      parent.send_line("done");
      return 0;
    } catch (const BadInput& error) {
      parent.send_line(std::string("bad input: ") + error.what());
    } catch (const dunlin::Error& error) {
      parent.send_line(error.what());
    }
    return count_children() == 0 ? 3 : 4;
  }

  static void play(Parent& parent, const Plan& plan, const Cluster& here,
                   const std::vector<LinkEvent>& events, dunlin::app::Watch& watch) {
    const auto listener = [&](const EventRecord& record) {
      if (record.event) return;
      // And the station, and the one that watches the other hosts.
      parent.send_line(std::to_string(count_children() - 2) + " routers here");
    };
    const Finish finish = run_on_processes(plan, here, listener, {}, &watch);
    const Topology& net = plan.topology();
    const Verdict verdict = check(net, costs_after(net, events, events.size()), finish.tables);
    if (!verdict.agrees()) throw dunlin::Error(verdict.differences.front());
  }

  static int fresh_number() {
    static int count = 0;
    return count++;
  }

  Accident accident_;
  std::string rendezvous_ =
      "test-routing-" + std::to_string(getpid()) + "-" + std::to_string(fresh_number());
  std::string secret_ = testing::TempDir() + rendezvous_;
  std::vector<Process> hosts_;
};

Hosts::Events same_everywhere(std::uint32_t count) {
  return [count](std::uint32_t, const Topology& net) { return random_events(net, count, 3); };
}

TEST(OfiRun, NeedsNothingButTheNameOfItsFabricOnOneHost) {
  std::mt19937_64 draw(1);
  const Topology net = random_network(6, 5, draw);
  const auto events = random_events(net, 10, 2);
  const Plan plan(net, events);
  std::string network;
  std::size_t told = 0;
  const Finish finish = run_on_processes(
      plan, Cluster({{.network = "ofi"}}), [&](const EventRecord&) { ++told; },
      [&](const std::string& text) { network = text; });
  EXPECT_EQ(told, events.size() + 1);
  EXPECT_TRUE(check(net, costs_after(net, events, events.size()), finish.tables).agrees());
  EXPECT_TRUE(contains(network, "libfabric tcp"));
  EXPECT_EQ(count_children(), 0U);
}

TEST(OfiRun, DealsTheRoutersOutToTheHosts) {
  const Topology net = hub_ring(7, {});
  Hosts hosts(net, same_everywhere(1'000));  // more than the station can tell at once
  EXPECT_EQ(hosts[0].receive_line(), "3 routers here");
  EXPECT_EQ(hosts[0].receive_line(), "done");
  for (std::size_t host = 0; host < kHosts; ++host) EXPECT_EQ(hosts[host].exit_code(), 0);
}

TEST(OfiRun, RefusesHostsWithOtherEventsOnAllOfThem) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, [](std::uint32_t host, const Topology& n) {
    return random_events(n, host == 1 ? 5 : 4, 3);
  });
  for (std::size_t host = 0; host < kHosts; ++host) {
    EXPECT_EQ(hosts.end_of(host),
              "bad input: the hosts have different plans: host 0 has ofi tcp: hub-ring:6, "
              "6 routers, 10 links, 4 events, 3 hosts, host 1 has ofi tcp: hub-ring:6, 6 routers, "
              "10 links, 5 events, 3 hosts");
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, SaysOnAllHostsThatTheyDifferInWhatTheirTextDoesNotShow) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, [](std::uint32_t host, const Topology& n) {
    return random_events(n, 4, host == 2 ? 5 : 3);
  });
  for (std::size_t host = 0; host < kHosts; ++host) {
    EXPECT_TRUE(contains(hosts.end_of(host), "with other links, costs or events"));
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, NamesARouterThatIsKilledOnAllHosts) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  kill(first_router_of(hosts[1].pid()), SIGKILL);
  for (std::size_t host = 0; host < kHosts; ++host) {
    EXPECT_TRUE(contains(hosts.end_of(host), "router 1 on host 1 is lost: "));
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, EndsOnTheOtherHostsWhenOneDies) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  hosts[2].kill();
  for (const std::size_t host : {0U, 1U}) {
    EXPECT_TRUE(contains(hosts.end_of(host), "on host 2 is lost: "));
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, EndsOnAllHostsWhenTheFirstDies) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  hosts[0].kill();
  for (const std::size_t host : {1U, 2U}) {
    EXPECT_TRUE(contains(hosts.end_of(host), "the station on host 0 is lost: "));
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, TellsAllHostsOfASignalToTheFirst) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  hosts[0].signal(SIGTERM);
  for (std::size_t host = 0; host < kHosts; ++host) {
    EXPECT_EQ(hosts.end_of(host), "stopped by SIGTERM");
    EXPECT_EQ(hosts[host].exit_code(), 3);
  }
}

TEST(OfiRun, EndsOnAllHostsIfOneOfThemIsStopped) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  hosts[1].signal(SIGINT);
  EXPECT_EQ(hosts.end_of(1), "stopped by SIGINT");
  for (const std::size_t host : {0U, 2U}) {
    EXPECT_TRUE(contains(hosts.end_of(host), "on host 1 is lost: "));
  }
  for (std::size_t host = 0; host < kHosts; ++host) EXPECT_EQ(hosts[host].exit_code(), 3);
}

TEST(OfiRun, EndsOnAllHostsIfOneCannotEvenJoin) {
  const Topology net = hub_ring(6, {});
  for (const std::uint32_t unlucky : {0U, 2U}) {
    Hosts hosts(net, same_everywhere(10), [unlucky](std::uint32_t host) {
      if (host == unlucky) throw dunlin::Error("out of luck");
    });
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      const std::string end = hosts.end_of(host);
      EXPECT_TRUE(contains(end, "out of luck")) << end;
      EXPECT_EQ(contains(end, "gave up: "), host != unlucky) << end;
      EXPECT_EQ(hosts[host].exit_code(), 3);
    }
  }
}

TEST(OfiRun, EndsOnTheOtherHostsIfOneDiesBeforeItJoins) {
  const Topology net = hub_ring(6, {});
  for (const std::uint32_t doomed : {0U, 1U}) {
    Hosts hosts(net, same_everywhere(10), [doomed](std::uint32_t host) {
      if (host == doomed) kill(getpid(), SIGKILL);
    });
    const std::string lost = "host " + std::to_string(doomed) + " is lost: ";
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      if (host == doomed) continue;
      const std::string end = hosts.end_of(host);
      EXPECT_TRUE(contains(end, lost)) << end;
      EXPECT_EQ(hosts[host].exit_code(), 3);
    }
  }
}

TEST(OfiRun, DoesNotGoOnUnwatched) {
  const Topology net = hub_ring(6, {});
  Hosts hosts(net, same_everywhere(10'000));
  hosts.await(0, "2 routers here");
  kill(watcher_of(hosts[1].pid()), SIGKILL);
  EXPECT_EQ(hosts.end_of(1), "the process of this host that watches the others has ended");
  for (std::size_t host = 0; host < kHosts; ++host) EXPECT_EQ(hosts[host].exit_code(), 3);
}

TEST(Plan, IsToldFromOneThatDiffersInAnything) {
  const Topology net = hub_ring(6, {});
  Topology dearer = hub_ring(6, {});
  dearer.links[3].cost += 1;
  const auto events = random_events(net, 4, 3);
  const auto others = random_events(net, 4, 4);
  const std::set<std::uint64_t> hashes = {Plan(net, events).hash(), Plan(net, others).hash(),
                                          Plan(dearer, events).hash(), Plan(net, events, 2).hash(),
                                          Plan(hub_ring(7, {}), {}).hash()};
  EXPECT_EQ(hashes.size(), 5U);
  EXPECT_EQ(Plan(net, events, 2).hash(), Plan(net, events, 2).hash());
}

}  // namespace
