#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/launch/complete.hpp"
#include "fabric/launch/host_list.hpp"
#include "support/errors.hpp"

/// Where a member belongs, by environments that launchers make, and by those that nobody should.
namespace dunlin::launch {
namespace {

using test::contains;
using test::what_is_thrown_by;

using Variables = std::map<std::string, std::string>;

constexpr std::uint32_t kAnyRank = JoinOptions::kAnyRank;

struct Completed : JoinOptions {
  std::string text = {};  // what was taken from where
};

Completed completed(const Variables& variables, JoinOptions options = {},
                    const std::string& host = "lonely") {
  if (options.group.empty()) options.group = "flock";
  Completed made{std::move(options)};
  made.text = complete(made, true, Environment(variables, host));
  return made;
}
std::string fault_of(const Variables& variables, const JoinOptions& options = {},
                     const std::string& host = "lonely") {
  return what_is_thrown_by([&] { static_cast<void>(completed(variables, options, host)); });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kByHand{{"DUNLIN_MEMBERS", "3"},
                        {"DUNLIN_RANK", "2"},
                        {"DUNLIN_RENDEZVOUS", "seed:7700"},
                        {"DUNLIN_SECRET", "what all members know"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_RANK", "2"},
                         {"PMIX_NAMESPACE", "1465581569"},    {"DUNLIN_SECRET", "known"}};
const Variables kSlurm{{"SLURM_PROCID", "5"},
                       {"SLURM_NTASKS", "8"},
                       {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_JOB_ID", "4711"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_JOB_NODELIST", "node[01-08]"},
                       {"SLURM_STEP_NODELIST", "node[03-06]"},
                       {"DUNLIN_SECRET", "known"}};

// --- by hand, systemd, Kubernetes ----------------------------------------------------------------

TEST(Launch, TakesItsPlaceFromOurOwnVariables) {
  const Completed options =
      completed(with(kByHand, {{"DUNLIN_ADDRESS", "10.0.0.7"}, {"DUNLIN_GROUP", "herd"}}));
  EXPECT_EQ(options.members, 3U);
  EXPECT_EQ(options.rank, 2U);
  EXPECT_EQ(options.rendezvous, "seed:7700");
  EXPECT_EQ(options.secret, "what all members know");
  EXPECT_EQ(options.address, "10.0.0.7");
  EXPECT_EQ(options.group, "flock");  // which was given
}

TEST(Launch, CountsNoSilenceWhereALauncherWatchesTheProcesses) {
  EXPECT_EQ(completed(kByHand).silence_ms(), JoinOptions::kSilenceTimeoutMs);
  for (const Variables& launched : {kOpenMpi, kSlurm}) {
    const Completed options = completed(launched);
    EXPECT_EQ(options.silence_ms(), 0U);
    EXPECT_TRUE(contains(options.text, "watches the processes"));
    EXPECT_EQ(completed(launched, {.silence_timeout_ms = 300}).silence_ms(), 300U);
  }
}

TEST(Launch, SaysWhatItTookFromWhereButNeverTheSecret) {
  const std::string text = completed(kByHand).text;
  EXPECT_TRUE(contains(text, "rank 2 of 3 (DUNLIN_RANK, DUNLIN_MEMBERS)"));
  EXPECT_TRUE(contains(text, "seed:7700 (DUNLIN_RENDEZVOUS)"));
  EXPECT_TRUE(contains(text, "secret from DUNLIN_SECRET"));
  EXPECT_EQ(text.find("what all members know"), std::string::npos);
}

TEST(Launch, AsksForNothingThatIsGiven) {
  const JoinOptions given{
      .members = 2, .rank = 1, .rendezvous = "unix:here", .secret = "given", .address = "::1"};
  const Completed options =
      completed({{"DUNLIN_MEMBERS", "nonsense"}, {"OMPI_COMM_WORLD_RANK", "7"}}, given);
  EXPECT_EQ(options.text, "");
  EXPECT_EQ(options.members, 2U);
  EXPECT_EQ(options.rank, 1U);
}

TEST(Launch, LeavesTheRankOpenIfNobodySaysIt) {
  EXPECT_EQ(completed(without(kByHand, "DUNLIN_RANK")).rank, kAnyRank);
}

TEST(Launch, KeepsARankThatIsGiven) {
  const Completed options = completed(without(kByHand, "DUNLIN_RANK"), {.rank = 0});
  EXPECT_EQ(options.rank, 0U);
  EXPECT_EQ(options.members, 3U);
}

TEST(Launch, TakesNamesFromOurOwnVariables) {
  const Variables named{{"DUNLIN_NAMES", "ada,bob,cyd"},
                        {"DUNLIN_NAME", "bob"},
                        {"DUNLIN_RENDEZVOUS", "seed:7700"},
                        {"DUNLIN_SECRET", "known"}};
  const Completed options = completed(named);
  EXPECT_EQ(options.names, (std::vector<std::string>{"ada", "bob", "cyd"}));
  EXPECT_EQ(options.name, "bob");
  EXPECT_TRUE(contains(fault_of(with(named, {{"DUNLIN_NAME", "eve"}})),
                       "DUNLIN_NAMES is 'ada,bob,cyd', but DUNLIN_NAME is 'eve'"));
  EXPECT_TRUE(contains(fault_of(with(named, {{"DUNLIN_NAMES", "ada,,bob"}})),
                       "DUNLIN_NAMES is 'ada,,bob': name 2 is empty"));
  EXPECT_TRUE(contains(fault_of(with(named, {{"DUNLIN_NAMES", "ada,bob,"}})),
                       "DUNLIN_NAMES is 'ada,bob,': name 3 is empty"));
  EXPECT_TRUE(contains(fault_of(without(named, "DUNLIN_NAME")), "DUNLIN_NAME is not set"));
  EXPECT_TRUE(contains(fault_of(with(named, {{"DUNLIN_MEMBERS", "3"}})), "DUNLIN_MEMBERS is '3'"));
}

TEST(Launch, TakesTheOrdinalOfAStatefulSetsHostName) {
  const Variables pod = with(kByHand, {{"DUNLIN_RANK", "ordinal"}});
  EXPECT_EQ(completed(pod, {}, "dunlin-1").rank, 1U);
  EXPECT_EQ(completed(pod, {}, "a-7-2").rank, 2U);
  EXPECT_TRUE(contains(fault_of(pod, {}, "dunlin"), "host's name 'dunlin' does not end"));
  EXPECT_TRUE(contains(fault_of(pod, {}, "dunlin-x1"), "'dunlin-x1'"));
  EXPECT_TRUE(contains(fault_of(pod, {}, "dunlin-"), "'dunlin-'"));
  EXPECT_TRUE(contains(fault_of(pod, {}, "dunlin-3"), "the rank is 3"));
}

TEST(Launch, RefusesVariablesThatMakeNoSense) {
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_MEMBERS", "many"}})),
                       "DUNLIN_MEMBERS is 'many', and not a number"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_MEMBERS", "0"}})), "DUNLIN_MEMBERS"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_RANK", "-1"}})), "DUNLIN_RANK is '-1'"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_RANK", ""}})), "DUNLIN_RANK is set, and"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_RANK", "3"}})),
                       "DUNLIN_RANK is '3'), but DUNLIN_MEMBERS is '3'"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_RENDEZVOUS_PORT", "7"}})),
                       "DUNLIN_RENDEZVOUS_PORT is '7'"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_LAUNCHER", "pigeon"}})), "slurm, pmix"));
}

TEST(Launch, RefusesWhatIsIncomplete) {
  EXPECT_TRUE(contains(fault_of({}), "say how many"));
  EXPECT_TRUE(
      contains(fault_of({{"DUNLIN_RANK", "1"}}), "DUNLIN_RANK is '1', but DUNLIN_MEMBERS is not"));
  EXPECT_TRUE(
      contains(fault_of(without(kByHand, "DUNLIN_RENDEZVOUS")), "DUNLIN_RENDEZVOUS=HOST:PORT"));
  EXPECT_TRUE(contains(fault_of(without(kByHand, "DUNLIN_SECRET")), "DUNLIN_SECRET_FILE"));
}

// --- the secret ----------------------------------------------------------------------------------

class SecretFile {
 public:
  SecretFile(const std::string& content, mode_t mode)
      : path_(testing::TempDir() + "secret-" + std::to_string(getpid())) {
    std::ofstream(path_) << content;
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
  }
  ~SecretFile() { unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Variables variables() const {
    return with(without(kByHand, "DUNLIN_SECRET"), {{"DUNLIN_SECRET_FILE", path_}});
  }

 private:
  std::string path_;
};

TEST(LaunchSecret, IsReadFromAFileWithoutTheLinesEnd) {
  EXPECT_EQ(completed(SecretFile("deep water, and wide\n", 0600).variables()).secret,
            "deep water, and wide");
  EXPECT_EQ(completed(SecretFile("deep water, and wide", 0440).variables()).secret,
            "deep water, and wide");
}

TEST(LaunchSecret, IsReadFromTheFileThatTheProgramNames) {
  const SecretFile file("deep water, and wide\n", 0600);
  EXPECT_EQ(completed(kByHand, {.secret_file = file.path()}).secret, "deep water, and wide");
  EXPECT_TRUE(contains(fault_of(kByHand, {.secret_file = "/dev/null/x"}), "(`secret_file`)"));
}

TEST(LaunchSecret, IsNoMatterOnOneHost) {
  JoinOptions options{.group = "flock"};
  EXPECT_TRUE(contains(complete(options, false, Environment(kOpenMpi, "lonely")), "rank 2 of 4"));
  EXPECT_TRUE(options.secret.empty());
  EXPECT_TRUE(options.rendezvous.empty());
}

TEST(LaunchSecret, IsRefusedInAFileThatOthersMayReadOrChange) {
  for (const mode_t mode : {0644U, 0602U, 0620U}) {
    const std::string fault = fault_of(SecretFile("deep water, and wide", mode).variables());
    EXPECT_TRUE(contains(fault, "chmod 600"));
    EXPECT_EQ(fault.find("deep water, and wide"), std::string::npos);
  }
}

TEST(LaunchSecret, IsRefusedIfThereIsNoneOrMoreThanOne) {
  EXPECT_TRUE(contains(fault_of(SecretFile("\n", 0600).variables()), "is empty"));
  EXPECT_TRUE(contains(fault_of(SecretFile("deep\n", 0600).variables()), "16 to 4096 bytes"));
  EXPECT_TRUE(contains(fault_of(SecretFile(std::string(5000, 'x'), 0600).variables()), "longer"));
  EXPECT_TRUE(contains(fault_of(with(kByHand, {{"DUNLIN_SECRET_FILE", "/x"}})), "both set"));
  const Variables nowhere = without(kByHand, "DUNLIN_SECRET");
  EXPECT_TRUE(contains(fault_of(with(nowhere, {{"DUNLIN_SECRET_FILE", "/dev/null/x"}})),
                       "the file '/dev/null/x' (DUNLIN_SECRET_FILE) cannot be read"));
  EXPECT_TRUE(contains(fault_of(with(nowhere, {{"DUNLIN_SECRET_FILE", "/dev/null"}})),
                       "is not a regular file"));
}

TEST(LaunchTls, IsTakenWholeOrRefused) {
  const Variables tls = with(kByHand, {{"DUNLIN_TLS_CERTIFICATE", "a.pem"},
                                       {"DUNLIN_TLS_KEY", "a.key"},
                                       {"DUNLIN_TLS_CA", "ca.pem"}});
  const Completed options = completed(tls);
  EXPECT_EQ(options.tls.certificate, "a.pem");
  EXPECT_EQ(options.tls.key, "a.key");
  EXPECT_EQ(options.tls.ca, "ca.pem");
  for (const char* variable : {"DUNLIN_TLS_CERTIFICATE", "DUNLIN_TLS_KEY", "DUNLIN_TLS_CA"})
    EXPECT_TRUE(contains(fault_of(without(tls, variable)), variable + std::string(" is not set")));
}

// --- Open MPI and PMIx ---------------------------------------------------------------------------

TEST(LaunchOpenMpi, MeetsAtASocketOfTheJobIfAllAreOnOneHost) {
  const Completed options = completed(kOpenMpi);
  EXPECT_EQ(options.members, 4U);
  EXPECT_EQ(options.rank, 2U);
  EXPECT_EQ(options.rendezvous, "unix:dunlin-openmpi-1465581569-flock");
  EXPECT_TRUE(contains(options.text, "Open MPI: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE"));
  EXPECT_TRUE(contains(options.text, "OMPI_COMM_WORLD_LOCAL_SIZE is '4'"));
}

TEST(LaunchOpenMpi, DoesNotGuessAHostIfTheyAreOnSeveral) {
  const Variables several = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const std::string fault = fault_of(several);
  EXPECT_TRUE(contains(fault, "OMPI_COMM_WORLD_LOCAL_SIZE is '2'"));
  EXPECT_TRUE(contains(fault, "DUNLIN_RENDEZVOUS=HOST:PORT"));
  EXPECT_EQ(completed(with(several, {{"DUNLIN_RENDEZVOUS", "node7:7700"}})).rendezvous,
            "node7:7700");
  EXPECT_EQ(completed(several, {.rendezvous = "node8:7700"}).rendezvous, "node8:7700");
}

TEST(LaunchOpenMpi, DoesNotGuessWhatIsMissing) {
  EXPECT_TRUE(contains(fault_of(without(kOpenMpi, "OMPI_COMM_WORLD_SIZE")),
                       "OMPI_COMM_WORLD_RANK is '2', but OMPI_COMM_WORLD_SIZE is not set"));
  EXPECT_TRUE(contains(fault_of(without(kOpenMpi, "OMPI_COMM_WORLD_RANK")),
                       "OMPI_COMM_WORLD_SIZE is '4', but OMPI_COMM_WORLD_RANK is not set"));
  EXPECT_TRUE(
      contains(fault_of(without(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE")), "on which hosts"));
  EXPECT_TRUE(contains(fault_of(without(kOpenMpi, "PMIX_NAMESPACE")), "on which hosts"));
}

TEST(LaunchOpenMpi, DoesNotBelieveAContradiction) {
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "2"}})),
                       "OMPI_COMM_WORLD_RANK is '2', but OMPI_COMM_WORLD_SIZE is '2'"));
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}})),
                       "OMPI_COMM_WORLD_LOCAL_SIZE is '5'"));
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"PMIX_RANK", "3"}})),
                       "OMPI_COMM_WORLD_RANK is '2', but PMIX_RANK is '3'"));
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"DUNLIN_MEMBERS", "3"}})),
                       "DUNLIN_MEMBERS is '3', but OMPI_COMM_WORLD_SIZE is '4'"));
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"DUNLIN_RANK", "0"}})),
                       "DUNLIN_RANK is '0', but OMPI_COMM_WORLD_RANK is '2'"));
}

TEST(LaunchOpenMpi, MayBeToldNotToBelieveAnyLauncher) {
  const Completed options =
      completed(with(with(kOpenMpi, kByHand), {{"DUNLIN_LAUNCHER", "dunlin"}}));
  EXPECT_EQ(options.members, 3U);
  EXPECT_EQ(options.rendezvous, "seed:7700");
  EXPECT_TRUE(contains(fault_of(with(kOpenMpi, {{"DUNLIN_LAUNCHER", "slurm"}})),
                       "nothing of this launcher"));
}

TEST(LaunchPmix, KnowsARankAndNoNumberOfMembers) {
  const Variables pmix{{"PMIX_RANK", "1"},
                       {"PMIX_NAMESPACE", "prterun-node7-1@1"},
                       {"DUNLIN_RENDEZVOUS", "seed:7700"},
                       {"DUNLIN_SECRET", "known"}};
  EXPECT_TRUE(contains(fault_of(pmix), "PMIX_RANK is '1', and PMIx does not say how many"));
  const Completed options = completed(with(pmix, {{"DUNLIN_MEMBERS", "2"}}));
  EXPECT_EQ(options.rank, 1U);
  EXPECT_EQ(options.members, 2U);
  EXPECT_TRUE(contains(fault_of(with(pmix, {{"DUNLIN_MEMBERS", "1"}})), "the rank is 1"));
}

// --- Slurm ---------------------------------------------------------------------------------------

TEST(LaunchSlurm, MeetsAtTheFirstHostOfTheStep) {
  const Completed options = completed(kSlurm);
  EXPECT_EQ(options.members, 8U);
  EXPECT_EQ(options.rank, 5U);
  EXPECT_TRUE(options.rendezvous.starts_with("node03:2") ||
              options.rendezvous.starts_with("node03:3"));
  EXPECT_TRUE(contains(options.text, "SLURM_STEP_NODELIST is 'node[03-06]'"));
  EXPECT_TRUE(contains(options.text, "the job's number 4711.0"));
}

TEST(LaunchSlurm, MeetsAtAPortOfItsJobAndGroup) {
  const std::string rendezvous = completed(kSlurm).rendezvous;
  EXPECT_EQ(completed(with(kSlurm, {{"SLURM_PROCID", "0"}})).rendezvous, rendezvous);
  EXPECT_NE(completed(with(kSlurm, {{"SLURM_JOB_ID", "4712"}})).rendezvous, rendezvous);
  EXPECT_NE(completed(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).rendezvous, rendezvous);
  EXPECT_NE(completed(kSlurm, {.group = "herd"}).rendezvous, rendezvous);
  EXPECT_EQ(completed(with(kSlurm, {{"DUNLIN_RENDEZVOUS_PORT", "7700"}})).rendezvous,
            "node03:7700");
}

TEST(LaunchSlurm, MeetsAtASocketOfTheJobIfThereIsOneHost) {
  EXPECT_EQ(completed(with(kSlurm, {{"SLURM_STEP_NODELIST", "node03"}})).rendezvous,
            "unix:dunlin-slurm-4711.0-flock");
}

TEST(LaunchSlurm, TakesTheJobsVariablesWhereTheStepHasNone) {
  const Completed options =
      completed(without(without(kSlurm, "SLURM_STEP_NUM_TASKS"), "SLURM_STEP_NODELIST"));
  EXPECT_EQ(options.members, 8U);
  EXPECT_TRUE(options.rendezvous.starts_with("node01:"));
}

TEST(LaunchSlurm, DoesNotGuessWhatIsMissing) {
  const Variables no_tasks = without(without(kSlurm, "SLURM_STEP_NUM_TASKS"), "SLURM_NTASKS");
  EXPECT_TRUE(contains(fault_of(no_tasks), "SLURM_PROCID is '5', but SLURM_NTASKS is not set"));
  EXPECT_TRUE(contains(fault_of(without(kSlurm, "SLURM_PROCID")),
                       "SLURM_JOB_ID is '4711', but SLURM_PROCID is not set"));
  EXPECT_TRUE(contains(fault_of(without(kSlurm, "SLURM_JOB_ID")), "DUNLIN_RENDEZVOUS_PORT"));
  const Variables no_hosts = without(without(kSlurm, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST");
  EXPECT_TRUE(contains(fault_of(no_hosts), "on which hosts"));
}

TEST(LaunchSlurm, DoesNotBelieveAContradiction) {
  EXPECT_TRUE(contains(fault_of(with(kSlurm, {{"SLURM_PROCID", "8"}})),
                       "SLURM_PROCID is '8', but SLURM_STEP_NUM_TASKS is '8'"));
  EXPECT_TRUE(contains(fault_of(with(kSlurm, {{"PMIX_RANK", "4"}})), "PMIX_RANK is '4'"));
  EXPECT_TRUE(contains(fault_of(with(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-9]"}})),
                       "9 hosts, but SLURM_STEP_NUM_TASKS is '8'"));
  EXPECT_TRUE(contains(fault_of(with(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-"}})),
                       "SLURM_STEP_NODELIST is 'node[1-'"));
}

TEST(LaunchSlurm, IsNotTheLauncherOfAnMpirunWithinIt) {
  const Completed options = completed(with(kSlurm, kOpenMpi));
  EXPECT_EQ(options.members, 4U);
  EXPECT_EQ(options.rank, 2U);
}

// --- Slurm's lists of hosts ----------------------------------------------------------------------

TEST(LaunchHostList, FindsTheFirstHostAndCountsAll) {
  const auto expect = [](const char* text, const char* first, std::uint64_t hosts) {
    const HostList list = parse_host_list(text);
    EXPECT_EQ(list.first, first) << text;
    EXPECT_EQ(list.hosts, hosts) << text;
  };
  expect("login", "login", 1);
  expect("a,b,c", "a", 3);
  expect("node[01-03,07],gpu-[1-2]-ib0,login", "node01", 7);
  expect("node[9-11]", "node9", 3);
  expect("r[1-2]n[01-10].cluster", "r1n01.cluster", 20);
  expect("[3,5]", "3", 2);
  expect("node007", "node007", 1);
}

TEST(LaunchHostList, RefusesWhatIsNone) {
  for (const char* text : {"", ",", "a,", "a,,b", "a[", "a[]", "a[1", "a[1-]", "a[3-1]", "a[x]",
                           "a]", "a b", "a[1-9999999999999999999999]", "a[1-999999][1-999999]"})
    EXPECT_NE(what_is_thrown_by([&] { static_cast<void>(parse_host_list(text)); }), "nothing")
        << text;
}

}  // namespace
}  // namespace dunlin::launch
