#include "fabric/launch/complete.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <sstream>

#include <dunlin/error.hpp>

#include "fabric/hash.hpp"
#include "fabric/join/options.hpp"
#include "fabric/launch/job.hpp"
#include "fabric/launch/pmix.hpp"
#include "fabric/member_list.hpp"
#include "fabric/private_file.hpp"

namespace dunlin::launch {
namespace {

constexpr std::uint32_t kMost = 1U << 30;
// These ports are below those that Linux chooses for a process that asks for any port.
constexpr std::uint32_t kFirstPort = 20'000;
constexpr std::uint32_t kPorts = 12'000;
constexpr const char* kWhatToDo =
    ". Unset the one that does not hold (DUNLIN_LAUNCHER=dunlin: what launchers say does not)";

class Completion {
 public:
  Completion(JoinOptions& open, const Environment& environment)
      : open_(open), environment_(environment) {}

  std::string run(bool between_hosts);
  void fill_reach(bool between_hosts);

 private:
  void fill_simple(bool between_hosts);
  void fill_members();
  void ask_pmix_for_the_job();
  void fill_rank(const std::string& members_from);
  void fill_names();
  void agree(const std::string& ours, std::uint32_t our_value, const std::string& launchers,
             std::uint32_t launchers_value) const;
  [[noreturn]] void throw_nobody_says_how_many();
  [[nodiscard]] std::optional<std::uint32_t> stated_rank() const;
  [[nodiscard]] std::uint32_t ordinal() const;
  void fill_rendezvous();
  void fill_what_proves();
  void fill_silence();
  void fill_secret();
  void fill_tls();
  [[nodiscard]] std::uint32_t port() const;
  [[nodiscard]] const std::optional<Job>& job();
  [[nodiscard]] const Pmix* pmix();
  [[nodiscard]] std::string of_rank_0(const std::string& what,
                                      const std::function<std::string()>& make) const;
  void note(const std::string& what) { text_ += (text_.empty() ? "" : "; ") + what; }
  [[noreturn]] void contradiction(const std::string& one, const std::string& other) const;

  JoinOptions& open_;
  const Environment& environment_;
  bool looked_ = false;
  std::optional<Job> job_;
  bool asked_pmix_ = false;
  std::optional<Pmix> pmix_;
  std::string why_no_pmix_;  // ", and PMIx cannot help: ..."
  std::string text_;
};

std::string Completion::run(bool between_hosts) {
  fill_simple(between_hosts);
  if (open_.members == 0 && open_.names.empty()) fill_members();
  if (between_hosts && open_.rendezvous.empty()) fill_rendezvous();
  if (between_hosts) fill_what_proves();
  fill_silence();
  return text_;
}

void Completion::fill_silence() {
  if (!open_.silence_timeout_ms && job_) {
    open_.silence_timeout_ms = 0;
    note("no member is given up for its silence, because " + job_->title +
         " watches the processes");
  }
}

void Completion::fill_reach(bool between_hosts) {
  fill_simple(between_hosts);
  if (between_hosts) fill_what_proves();
  fill_silence();
}

/// Fills in what members prove to each other that they are some.
void Completion::fill_what_proves() {
  if (!open_.secret.empty() && !open_.secret_file.empty())
    throw Error("group '" + open_.group + "': give `secret` or `secret_file`, and not both");
  if (open_.secret.empty()) fill_secret();
  if (open_.tls.none()) fill_tls();
}

constexpr std::array<std::string_view, 10> kWithRulesOfTheirOwn{
    "members", "rank",        "names",           "name",    "rendezvous",
    "secret",  "secret_file", "tls_certificate", "tls_key", "tls_ca"};

/// Fills the options whose variable stands for itself. What concerns other hosts is no matter to
/// members of one.
void Completion::fill_simple(bool between_hosts) {
  for (const JoinOption& option : join_options()) {
    const bool here = between_hosts ? option.needs != JoinOption::Needs::one_host
                                    : option.needs == JoinOption::Needs::nothing ||
                                          option.needs == JoinOption::Needs::one_host;
    if (!here || option.given(open_) || std::ranges::count(kWithRulesOfTheirOwn, option.name) > 0)
      continue;
    const std::string variable = option.variable();
    const std::optional<std::string> text = environment_.text(variable);
    if (!text) continue;
    try {
      option.take(open_, *text);
    } catch (const Error& error) {
      throw Error(state_of(environment_, variable) + ": " + error.what());
    }
    note(std::string(option.name) + " " + *text + " (" + variable + ")");
  }
}

/// The launcher's job, which is read only when it is needed: an unneeded variable may be wrong.
const std::optional<Job>& Completion::job() {
  if (!looked_) job_ = find_job(environment_);
  looked_ = true;
  return job_;
}

/// The launcher's PMIx server, which is asked only for what nobody else says; null: there is none.
const Pmix* Completion::pmix() {
  if (!asked_pmix_ && environment_.is_own() && environment_.has("PMIX_RANK")) {
    try {
      pmix_.emplace();
    } catch (const Error& error) {
      why_no_pmix_ = std::string(" (its PMIx server cannot help: ") + error.what() + ")";
    }
  }
  asked_pmix_ = true;
  return pmix_ ? &*pmix_ : nullptr;
}

/// What the member of rank 0 has made for all members of this group. Throws Error.
std::string Completion::of_rank_0(const std::string& what,
                                  const std::function<std::string()>& make) const {
  try {
    return pmix_->of_rank_0("dunlin." + open_.group + "." + what, make, open_.join_ms());
  } catch (const Error& error) {
    throw Error("group '" + open_.group + "' has no " + what + " from the process of rank 0 (" +
                error.what() + "): does it join this group, too?");
  }
}

void Completion::contradiction(const std::string& one, const std::string& other) const {
  throw Error("the environment contradicts itself: " + state_of(environment_, one) + ", but " +
              state_of(environment_, other) + kWhatToDo);
}

// --- this member's identity ----------------------------------------------------------------------

/// The number of this pod: a Kubernetes stateful set calls its pods "name-0", "name-1", ...
std::uint32_t Completion::ordinal() const {
  const std::string host = environment_.host_name();
  const std::size_t dash = host.rfind('-');
  std::uint32_t rank = 0;
  if (dash != std::string::npos) {
    const char* const end = host.data() + host.size();
    const auto read = std::from_chars(host.data() + dash + 1, end, rank);
    if (read.ec == std::errc() && read.ptr == end && rank < kMost) return rank;
  }
  throw Error("DUNLIN_RANK is 'ordinal', but the host's name '" + host +
              "' does not end with a dash and a number, as those of a stateful set do");
}

std::optional<std::uint32_t> Completion::stated_rank() const {
  if (!environment_.has("DUNLIN_RANK")) return std::nullopt;
  if (environment_.text("DUNLIN_RANK") == "ordinal") return ordinal();
  return environment_.number("DUNLIN_RANK", 0, kMost);
}

/// Checks that a value that is given twice is equal.
void Completion::agree(const std::string& ours, std::uint32_t our_value,
                       const std::string& launchers, std::uint32_t launchers_value) const {
  if (our_value != launchers_value) contradiction(ours, launchers);
}

void Completion::throw_nobody_says_how_many() {
  const std::string group = "group '" + open_.group + "'";
  if (environment_.has("DUNLIN_RANK"))
    throw Error(group + ": " + state_of(environment_, "DUNLIN_RANK") + ", but " +
                state_of(environment_, "DUNLIN_MEMBERS") + ": say how many members there are");
  std::string text = group +
                     " has no members: say how many, by the options or DUNLIN_MEMBERS, or start "
                     "them with mpirun or srun";
  if (job())
    text += " (" + state_of(environment_, job()->rank_variable) + ", and " + job()->title +
            " does not say how many there are)";
  else if (environment_.has("SLURM_JOB_ID"))
    text += " (" + state_of(environment_, "SLURM_JOB_ID") + ", but " +
            state_of(environment_, "SLURM_PROCID") + ")";
  throw Error(text);
}

void Completion::fill_members() {
  if (environment_.has("DUNLIN_NAMES")) return fill_names();
  const auto members = environment_.number("DUNLIN_MEMBERS", 1, kMost);
  const std::optional<Job>& of = job();
  if (!members && of && !of->members && pmix() != nullptr) ask_pmix_for_the_job();
  const bool launcher_counts = of && of->members;
  if (!members && !launcher_counts) throw_nobody_says_how_many();
  if (members && launcher_counts)
    agree("DUNLIN_MEMBERS", *members, of->members_variable, *of->members);
  open_.members = members ? *members : *of->members;
  fill_rank(members ? "DUNLIN_MEMBERS" : of->members_variable);
}

void Completion::ask_pmix_for_the_job() {
  job_->members = pmix_->job_size();
  job_->members_variable = "PMIX_JOB_SIZE of the server";
  job_->on_one_host = pmix_->local_size() == *job_->members;
}

void Completion::fill_rank(const std::string& members_from) {
  const std::string members = std::to_string(open_.members);
  const std::optional<std::uint32_t> rank = stated_rank();
  const std::optional<Job>& of = job();
  if (rank && of) agree("DUNLIN_RANK", *rank, of->rank_variable, of->rank);
  if (open_.rank != kAnyRank || (!rank && !of))
    return note(members + " members (" + members_from + ")");
  open_.rank = rank ? *rank : of->rank;
  const std::string from = rank ? "DUNLIN_RANK" : of->rank_variable;
  if (open_.rank >= open_.members)
    throw Error("the environment contradicts itself: the rank is " + std::to_string(open_.rank) +
                " (" + state_of(environment_, from) + "), but " +
                state_of(environment_, members_from) + ", and ranks count from 0");
  note("rank " + std::to_string(open_.rank) + " of " + members + " (" +
       (of ? of->title + ": " : "") + from + ", " + members_from + ")");
}

void Completion::fill_names() {
  for (const char* other : {"DUNLIN_MEMBERS", "DUNLIN_RANK"})
    if (environment_.has(other)) contradiction("DUNLIN_NAMES", other);
  std::istringstream list(*environment_.text("DUNLIN_NAMES") + ',');
  for (std::string name; std::getline(list, name, ',');) {
    open_.names.push_back(name);
    if (name.empty())
      throw Error(state_of(environment_, "DUNLIN_NAMES") + ": name " +
                  std::to_string(open_.names.size()) +
                  " is empty; give each one, with a comma between two of them");
  }
  const auto count = static_cast<std::uint32_t>(open_.names.size());
  if (job() && job()->members)
    agree("DUNLIN_NAMES", count, job()->members_variable, *job()->members);
  const std::string names = std::to_string(count) + " names";
  if (!open_.name.empty()) return note(names + " (DUNLIN_NAMES)");
  const std::optional<std::string> name = environment_.text("DUNLIN_NAME");
  if (!name)
    throw Error("the environment is incomplete: " + state_of(environment_, "DUNLIN_NAMES") +
                ", but " + state_of(environment_, "DUNLIN_NAME") +
                ": say which of the names is this member's");
  if (std::find(open_.names.begin(), open_.names.end(), *name) == open_.names.end())
    contradiction("DUNLIN_NAMES", "DUNLIN_NAME");
  open_.name = *name;
  note("'" + *name + "' of " + names + " (DUNLIN_NAME, DUNLIN_NAMES)");
}

// --- where we meet -------------------------------------------------------------------------------

/// A port that all members of a job's group compute, and other groups seldom do.
std::uint32_t Completion::port() const {
  return kFirstPort + static_cast<std::uint32_t>(fnv1a(job_->id + "/" + open_.group) % kPorts);
}

void Completion::fill_rendezvous() {
  const std::optional<std::string> rendezvous = environment_.text("DUNLIN_RENDEZVOUS");
  const auto given_port = environment_.number("DUNLIN_RENDEZVOUS_PORT", 1, 65535);
  if (rendezvous) {
    if (given_port) contradiction("DUNLIN_RENDEZVOUS", "DUNLIN_RENDEZVOUS_PORT");
    open_.rendezvous = *rendezvous;
    return note("rendezvous at " + *rendezvous + " (DUNLIN_RENDEZVOUS)");
  }
  const std::optional<Job>& of = job();
  const std::string where = "group '" + open_.group + "' does not know where its members meet: ";
  if (!of)
    throw Error(where +
                "give the option `rendezvous`, or DUNLIN_RENDEZVOUS=HOST:PORT, the same to all");
  const std::string because = of->hosts_because.empty() ? "" : " (" + of->hosts_because + ")";
  if (of->on_one_host == true && !of->id.empty()) {
    open_.rendezvous = "unix:dunlin-" + of->launcher + "-" + of->id + "-" + open_.group;
    return note("rendezvous at " + open_.rendezvous + ", as all members are on this host" +
                because);
  }
  std::string first_host = of->first_host;
  if (first_host.empty() && pmix() != nullptr)
    first_host = of_rank_0("host", [this] { return environment_.host_name(); });
  if (first_host.empty())
    throw Error(
        where + of->title +
        (of->on_one_host == false
             ? " has members on several hosts" + because + ", and does not say which"
             : " does not say on which hosts they are") +
        why_no_pmix_ +
        ". Give all of them the same DUNLIN_RENDEZVOUS=HOST:PORT, where HOST is one of theirs "
        "(or unix:NAME, if there is only one)");
  if (!given_port && of->id.empty())
    throw Error(where + of->title + " has given the job no number (" +
                state_of(environment_, "SLURM_JOB_ID") + "): give DUNLIN_RENDEZVOUS_PORT");
  open_.rendezvous = first_host + ":" + std::to_string(given_port ? *given_port : port());
  note("rendezvous at " + open_.rendezvous + ", on the first host" + because + ", at a port from " +
       (given_port ? "DUNLIN_RENDEZVOUS_PORT" : "the job's number " + of->id + " and the group"));
}

// --- what only members know ----------------------------------------------------------------------

void Completion::fill_secret() {
  if (!open_.secret_file.empty()) {
    open_.secret = read_secret(open_.secret_file, "`secret_file`");
    return;
  }
  const std::optional<std::string> secret = environment_.text("DUNLIN_SECRET");
  const std::optional<std::string> file = environment_.text("DUNLIN_SECRET_FILE");
  if (secret && file)
    throw Error(
        "the environment contradicts itself: DUNLIN_SECRET and DUNLIN_SECRET_FILE are both "
        "set. Unset the one that does not hold");
  if (secret) {
    open_.secret = *secret;
    return note("secret from DUNLIN_SECRET");
  }
  if (!file && job() && pmix() != nullptr) {
    open_.secret = of_rank_0("secret", random_secret);
    return note("secret from rank 0, by the PMIx server of " + job_->title);
  }
  if (!file)
    throw Error("group '" + open_.group + "' has no secret" + why_no_pmix_ +
                ": give all members the same, by the option `secret`, or in a file "
                "that DUNLIN_SECRET_FILE names. To make one: openssl rand -hex 32");
  open_.secret = read_secret(*file, "DUNLIN_SECRET_FILE");
  note("secret from the file '" + *file + "' (DUNLIN_SECRET_FILE)");
}

/// Fills in all TLS files, or none: half of them would be a mistake that no user notices.
void Completion::fill_tls() {
  std::vector<std::string> missing;
  std::size_t found = 0;
  for (const auto& [variable, option] :
       {std::pair("DUNLIN_TLS_CERTIFICATE", &open_.tls.certificate),
        std::pair("DUNLIN_TLS_KEY", &open_.tls.key), std::pair("DUNLIN_TLS_CA", &open_.tls.ca)}) {
    const std::optional<std::string> file = environment_.text(variable);
    if (!file) {
      missing.emplace_back(variable);
      continue;
    }
    *option = *file;
    ++found;
  }
  if (found == 0) return;
  if (!missing.empty())
    throw Error(
        "TLS is half configured by the environment: of DUNLIN_TLS_CERTIFICATE, "
        "DUNLIN_TLS_KEY and DUNLIN_TLS_CA, " +
        missing.front() + " is not set" + (missing.size() > 1 ? ", nor is " + missing.back() : "") +
        ". Set all three, or none");
  note("TLS by DUNLIN_TLS_CERTIFICATE, DUNLIN_TLS_KEY and DUNLIN_TLS_CA");
}

}  // namespace

std::string network_name(const Environment& environment) {
  return environment.text("DUNLIN_NETWORK").value_or("shm");
}

std::string complete(JoinOptions& open, bool between_hosts, const Environment& environment) {
  return Completion(open, environment).run(between_hosts);
}

void complete_reach(JoinOptions& open, bool between_hosts, const Environment& environment) {
  Completion(open, environment).fill_reach(between_hosts);
}

}  // namespace dunlin::launch
