#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/version.hpp>

#include "cluster/fabric_options.hpp"
#include "command.hpp"
#include "doctor/examine.hpp"
#include "doctor/output.hpp"
#include "support/errors.hpp"

/// What `dunlin doctor` finds on hosts that the test makes up, and on this one.
namespace dunlin::doctor {
namespace {

using test::contains;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
const std::string kClock = "sys/devices/system/clocksource/clocksource0/";
const std::string kLimits = "proc/self/limits";

/// A host of files, where all is well until the test says otherwise.
class Doctor : public testing::Test {
 protected:
  Doctor() {
    std::string pattern = testing::TempDir() + "doctor-XXXXXX";
    host_ = {.root = mkdtemp(pattern.data()),
             .shm_space = [this] { return space_; },
             .has_barriers = [this] { return barriers_; },
             .has_tcp = true,
             .has_ofi = true,
             .has_verbs = true,
             .interfaces = [this] { return interfaces_; },
             .addresses = [this] { return addresses_; },
             .ranking = [this] { return ranking_; },
             .networks = [this] { return networks_; },
             .unfit_networks = [] { return std::vector<std::string>{"udp: has no connections"}; }};
    write("proc/sys/kernel/hostname", "healthy");
    write("proc/sys/kernel/osrelease", "6.1.0");
    write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,6\nCapEff:\t0000000000000000\n");
    write("proc/meminfo", "MemTotal:  4194304 kB\nMemAvailable: 2097152 kB\nHugePages_Total: 3\n");
    write("proc/mounts", "tmpfs /dev/shm tmpfs rw,huge=within_size,nosuid 0 0\n");
    set_limits("unlimited", "1048576");
    write("sys/devices/system/cpu/online", "0-7");
    write(kClock + "current_clocksource", "tsc");
    write(kClock + "available_clocksource", "tsc hpet acpi_pm ");
  }
  ~Doctor() override { std::filesystem::remove_all(host_.root); }

  void write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = host_.root / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content << '\n';
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(host_.root / path); }
  void set_limits(const std::string& locked, const std::string& files) const {
    write(kLimits,
          "Limit                     Soft Limit           Hard Limit           Units\n"
          "Max open files            1024                 " +
              files +
              "     files\n"
              "Max locked memory         " +
              locked + "          " + locked + "  bytes");
  }
  void add_device(const std::string& state) const {
    const std::string device = "sys/class/infiniband/rxe0";
    write(device + "/node_type", "1: CA");
    write(device + "/ports/1/state", state);
    write(device + "/ports/1/link_layer", "Ethernet");
    write(device + "/ports/1/gid_attrs/ndevs/0", "eth7");
    write("dev/infiniband/uverbs0", "");
    write("dev/infiniband/rdma_cm", "");
  }

  [[nodiscard]] Finding of(const std::string& subject) const {
    const Report report = examine(host_);
    for (const auto* findings : {&report.fabrics, &report.machine})
      for (const Finding& finding : *findings)
        if (finding.subject == subject) return finding;
    ADD_FAILURE() << "nothing about " << subject;
    return {};
  }
  /// What is the matter, and what mends it.
  void expect(const std::string& subject, State state, const std::string& text,
              const std::string& mend) const {
    const Finding finding = of(subject);
    EXPECT_STREQ(name_of(finding.state), name_of(state)) << subject;
    EXPECT_TRUE(contains(finding.text, text));
    EXPECT_TRUE(contains(finding.mend, mend));
    EXPECT_TRUE(contains(describe(examine(host_)), finding.mend));
  }

  Host host_;
  std::optional<Space> space_ = Space{4 * kGiB, 2 * kGiB};
  bool barriers_ = true;
  std::vector<Interface> interfaces_{{.name = "lo", .up = true, .loopback = true},
                                     {.name = "eth7", .up = true, .loopback = false}};
  std::vector<std::string> addresses_{"lo 127.0.0.1", "eth7 10.0.0.1"};
  std::vector<std::string> ranking_{"tcp"};
  std::vector<std::string> networks_{"tcp: eth7 10.0.0.0/8", "tcp: lo 127.0.0.1/32"};
};

TEST_F(Doctor, FindsNothingToMendOnAHealthyHost) {
  const Report report = examine(host_);
  EXPECT_EQ(report.count(State::problem), 0U);
  EXPECT_EQ(report.count(State::advice), 0U);
  EXPECT_TRUE(contains(describe(report), "on healthy, Linux 6.1.0"));
  EXPECT_TRUE(contains(describe(report), "All is well."));
}

TEST_F(Doctor, SaysWhatItFound) {
  EXPECT_TRUE(contains(of("cores").text, "5 for this process, of 8 online"));
  EXPECT_TRUE(contains(of("memory").text, "2.0 GiB available of 4.0 GiB"));
  EXPECT_TRUE(contains(of("/dev/shm").text, "2.0 GiB free of 4.0 GiB"));
  EXPECT_TRUE(contains(of("huge pages").text, "within_size"));
  EXPECT_EQ(of("huge pages").facts["reserved"], 3);
  EXPECT_EQ(of("open files").facts["hard"], 1048576);
  EXPECT_TRUE(of("locked memory").facts["soft_bytes"].is_null());  // unlimited
}

// --- shortcomings --------------------------------------------------------------------------------

TEST_F(Doctor, AdvisesOnALonelyCore) {
  write("proc/self/status", "Cpus_allowed_list:\t2\n");
  expect("cores", State::advice, "1 for this process", "taskset");
}

TEST_F(Doctor, AdvisesOnAQuotaOfTheControlGroup) {
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  expect("cores", State::advice, "allows 1.5 in all", "CPU limit");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(of("cores").state, State::good);
}

TEST_F(Doctor, AdvisesOnLittleLockedMemory) {
  set_limits("8388608", "1048576");
  expect("locked memory", State::advice, "8.0 MiB", "ulimit -l unlimited");
  write("proc/self/status", "Cpus_allowed_list:\t0-3\nCapEff:\t000001ffffffffff\n");
  EXPECT_EQ(of("locked memory").state, State::good);
}

TEST_F(Doctor, AdvisesOnFewOpenFiles) {
  set_limits("unlimited", "512");
  expect("open files", State::advice, "512 at most, 1024 now", "LimitNOFILE=768");
  set_limits("unlimited", "64");
  expect("open files", State::problem, "64 at most", "ulimit -Hn");
}

TEST_F(Doctor, AdvisesOnLittleSharedMemory) {
  space_ = Space{64 << 20, 60 << 20};
  expect("/dev/shm", State::advice, "60 MiB free of 64 MiB", "--shm-size=1g");
  space_ = Space{64 << 20, 4096};
  expect("/dev/shm", State::problem, "4.0 KiB free", "mount -o remount,size=1G /dev/shm");
  space_.reset();
  expect("/dev/shm", State::problem, "not there", "mount -t tmpfs");
  expect("shm", State::problem, "no /dev/shm", "mount -t tmpfs");
}

TEST_F(Doctor, FindsSharedMemoryThatNothingCanBeMadeIn) {
  space_->fault = EROFS;
  expect("shm", State::problem, "Read-only file system", "mount -o remount,rw /dev/shm");
  space_->fault = EACCES;
  expect("shm", State::problem, "Permission denied", "chmod 1777 /dev/shm");
  space_->fault = EOPNOTSUPP;
  expect("shm", State::problem, "not supported", "mount -t tmpfs");
}

TEST_F(Doctor, AdvisesOnASlowClock) {
  write(kClock + "current_clocksource", "hpet");
  expect("clock", State::advice, "hpet", "echo tsc > /" + kClock + "current_clocksource");
  write(kClock + "available_clocksource", "hpet acpi_pm");
  expect("clock", State::advice, "hpet", "clocksource=tsc");
}

TEST_F(Doctor, AdvisesOnMissingBarriers) {
  barriers_ = false;
  expect("barriers", State::advice, "pays for a fence", "seccomp");
}

TEST_F(Doctor, TellsHowToGetHugePages) {
  write("proc/mounts", "tmpfs /dev/shm tmpfs rw,nosuid 0 0\n");
  expect("huge pages", State::good, "none in /dev/shm", "huge=within_size");
}

TEST_F(Doctor, SaysWhatItCouldNotRead) {
  for (const char* path : {"proc/self", "proc/meminfo", "sys/devices"}) remove(path);
  for (const char* subject : {"cores", "memory", "locked memory", "open files", "clock"})
    EXPECT_TRUE(contains(of(subject).text, "cannot be read")) << subject;
}

TEST_F(Doctor, IsNotConfusedByWhatMakesNoSense) {
  write("proc/self/status", "Cpus_allowed_list:\tx-y\nCapEff:\tzz\n");
  write(kLimits, "Max open files  many  few\nMax locked memory\n");
  write("proc/meminfo", "MemTotal: lots\n");
  for (const char* subject : {"cores", "memory", "locked memory", "open files"})
    EXPECT_TRUE(contains(of(subject).text, "cannot be read")) << subject;
}

// --- fabrics -------------------------------------------------------------------------------------

TEST_F(Doctor, ListsTheNetworksOfEachProviderAndWhyOthersAreNoUse) {
  networks_.emplace_back("pigeon: roof 1.2.3.4/8");
  const Finding ofi = of("ofi");
  ASSERT_EQ(ofi.parts.size(), 3U);
  EXPECT_EQ(ofi.parts[0].subject, "tcp");
  EXPECT_EQ(ofi.parts[0].text, "eth7 10.0.0.0/8, lo 127.0.0.1/32");
  EXPECT_EQ(ofi.parts[0].facts["networks"][1]["device"], "lo");
  EXPECT_EQ(ofi.parts[1].state, State::absent);
  EXPECT_TRUE(contains(ofi.parts[1].text, "not tested"));
  EXPECT_EQ(ofi.parts[2].text, "has no connections");
}

TEST_F(Doctor, SaysWhyThereIsNoOfi) {
  networks_.clear();
  expect("ofi", State::problem, "no network with connected endpoints", "fi_info");
  host_.has_ofi = false;
  expect("ofi", State::absent, "not in this build", "libfabric-dev");
}

TEST_F(Doctor, SaysHowFarTcpReaches) {
  EXPECT_EQ(of("tcp").state, State::good);
  EXPECT_EQ(of("tcp").text,
            "between hosts, over the kernel's sockets: lo 127.0.0.1, eth7 10.0.0.1");
  addresses_.pop_back();
  expect("tcp", State::advice, "this host only", "ip link set eth7 up && ip address add");
  addresses_.clear();
  expect("tcp", State::problem, "not even lo", "ip link set lo up");
  host_.has_tcp = false;
  expect("tcp", State::absent, "not in this build", "libssl-dev");
}

TEST_F(Doctor, SaysOfWhichFabricsAutoIsMadeHere) {
  EXPECT_EQ(of("auto").state, State::good);
  EXPECT_TRUE(contains(of("auto").text, "shm within this host, between hosts tcp"));
  ranking_ = {"verbs on mlx5_0 10.0.0.1", "tcp"};
  EXPECT_TRUE(contains(of("auto").text,
                       "between hosts verbs on mlx5_0 10.0.0.1 if all members have such a network, "
                       "else tcp"));
  ranking_ = {"tcp"};
  space_.reset();
  EXPECT_EQ(of("auto").state, State::good);
  EXPECT_TRUE(contains(of("auto").text, "tcp alone"));
  host_.has_tcp = false;
  expect("auto", State::absent, "not without tcp", "");
}

TEST_F(Doctor, SaysHowFarTcpReachesThroughLibfabric) {
  EXPECT_EQ(of("ofi").state, State::good);
  interfaces_[1].up = false;  // libfabric may list its address all the same
  expect("ofi", State::advice, "this host only", "ip link set eth7 up && ip address add");
  EXPECT_EQ(of("ofi").parts.at(0).state, State::advice);
  interfaces_[1].up = true;
  networks_ = {"tcp: lo 127.0.0.1/32"};
  expect("ofi", State::advice, "no other device is up and has an address", "dev eth7");
  interfaces_.pop_back();
  expect("ofi", State::advice, "this host only", "give this host (or container)");
  interfaces_[0].up = false;
  expect("ofi", State::problem, "not even lo", "ip link set lo up");
}

TEST_F(Doctor, SaysWhyThereIsNoVerbs) {
  expect("verbs", State::absent, "no RDMA device", "modprobe rdma_rxe");
  add_device("4: ACTIVE");
  EXPECT_EQ(of("verbs").state, State::good);
  EXPECT_TRUE(contains(of("verbs").parts.at(0).text, "RoCE, port 1 is ACTIVE, on eth7"));
  remove("dev/infiniband/rdma_cm");
  expect("verbs", State::problem, "no /dev/infiniband/rdma_cm", "modprobe rdma_ucm");
  remove("dev/infiniband");
  expect("verbs", State::problem, "no /dev/infiniband/uverbs*", "modprobe ib_uverbs");
  add_device("1: DOWN");
  expect("verbs", State::problem, "none has an active port", "ip link set eth7 up");
  host_.has_verbs = false;
  expect("verbs", State::absent, "this build of Dunlin has no verbs", "");
}

TEST_F(Doctor, KnowsTheTransportsOfDevices) {
  add_device("4: ACTIVE");
  write("sys/class/infiniband/rxe0/node_type", "4: RNIC");
  EXPECT_EQ(of("verbs").parts.at(0).facts["transport"], "iWARP");
  write("sys/class/infiniband/rxe0/node_type", "1: CA");
  write("sys/class/infiniband/rxe0/ports/1/link_layer", "InfiniBand");
  EXPECT_EQ(of("verbs").parts.at(0).facts["transport"], "InfiniBand");
}

// --- what is printed -----------------------------------------------------------------------------

TEST_F(Doctor, SaysWhyAFabricWouldNotWork) {
  host_.has_tcp = false;
  const Report report = examine(host_);
  EXPECT_EQ(report.why_not("shm"), "");
  EXPECT_EQ(report.why_not("tcp"), of("tcp").text);
  EXPECT_EQ(report.why_not("pigeon"), "nothing is known about it");
}

TEST_F(Doctor, CountsProblemsAndAdvice) {
  barriers_ = false;
  space_.reset();
  const nlohmann::ordered_json json = to_json(examine(host_));
  EXPECT_EQ(json["schema"], "dunlin-doctor-1");
  EXPECT_EQ(json["problems"], 2);
  EXPECT_EQ(json["advice"], 1);
  EXPECT_TRUE(contains(describe(examine(host_)), "2 problems, 1 piece of advice."));
}

/// Runs the command, and gives what it prints.
std::string printed_by(const std::vector<const char*>& words, app::Status expected) {
  testing::internal::CaptureStdout();
  const app::Status status = app::run(static_cast<int>(words.size()), words.data());
  EXPECT_EQ(status, expected);
  return testing::internal::GetCapturedStdout();
}

bool no_problem_here() { return examine(this_host()).count(State::problem) == 0; }

app::Status status_if(bool good) { return good ? app::Status::ok : app::Status::failed; }

TEST(DoctorHere, PrintsJsonThatSaysWhatTheSystemSays) {
  const auto json = nlohmann::json::parse(
      printed_by({"dunlin", "doctor", "--json"}, status_if(no_problem_here())));
  EXPECT_EQ(json["version"], version());
  std::ifstream release("/proc/sys/kernel/osrelease");
  std::string kernel;
  release >> kernel;
  EXPECT_EQ(json["kernel"], kernel);
  for (const auto& finding : json["machine"]) {
    if (finding["subject"] == "cores") {
      EXPECT_EQ(finding["facts"]["allowed"], std::thread::hardware_concurrency());
    } else if (finding["subject"] == "memory") {
      EXPECT_EQ(finding["facts"]["total_bytes"],
                static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                    static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
    }
  }
  std::vector<std::string> fabrics;
  for (const auto& finding : json["fabrics"])
    fabrics.push_back(finding["subject"].get<std::string>());
  EXPECT_TRUE(std::ranges::is_permutation(fabrics, app::fabric_names(app::Simulator::with)));
}

TEST(DoctorHere, RefusesAFabricThatDoesNotExist) {
  EXPECT_EQ(printed_by({"dunlin", "doctor", "--fabric", "pigeon"}, app::Status::bad_input), "");
}

TEST(DoctorHere, FailsIfTheFabricThatMustWorkWouldNot) {
  const Report report = examine(this_host());
  for (const Finding& fabric : report.fabrics) {
    const bool works = fabric.state == State::good || fabric.state == State::advice;
    printed_by({"dunlin", "doctor", "--fabric", fabric.subject.c_str()},
               status_if(works && no_problem_here()));
  }
}

}  // namespace
}  // namespace dunlin::doctor
