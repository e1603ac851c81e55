#include "fabric/rendezvous/roster_exchange.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <dunlin/error.hpp>

#include "fabric/backoff.hpp"
#include "fabric/rendezvous/host.hpp"
#include "fabric/rendezvous/joiner.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
/// The shortest time between two questions to a name server.
constexpr std::uint64_t kResolveIntervalNs = 500 * kNsPerMs;
/// How many refusals without a proof end the search, which takes about a second. A process that
/// holds the address and is no host of ours may be about to leave, and cannot prove that we should.
constexpr int kComplaintsToBelieve = 20;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

}  // namespace

/// Connects to the address of the rendezvous, again and again, until it is the host or has met one.
class RosterExchange::Seeker {
 public:
  Seeker(const Options& options, Bytes endpoint_address)
      : plan_(plan_from(options, endpoint_address)),
        endpoint_address_(endpoint_address.begin(), endpoint_address.end()),
        address_(parse_address(plan_.address)),
        deadline_ns_(now() + plan_.timeout_ms * kNsPerMs) {}

  [[nodiscard]] std::optional<Roster> poll();
  [[nodiscard]] Awaited awaited() const;

 private:
  void begin_round();
  [[nodiscard]] std::optional<Roster> serve();
  void resolve_again();
  void visit_next();
  [[nodiscard]] std::optional<Roster> go_on_visiting();
  void judge(const Attempt& attempt);
  void pause();
  [[nodiscard]] Error failure(const std::string& why) const;

  const Plan plan_;
  const std::vector<std::byte> endpoint_address_;
  Address address_;
  std::uint64_t deadline_ns_;
  std::vector<SocketAddress> endpoints_;
  std::size_t visited_ = 0;       // how many of them in this round
  std::optional<Joiner> joiner_;  // at the endpoint visited last
  std::optional<Host> host_;
  std::uint64_t resume_ns_ = 0;  // when the next round begins
  std::uint64_t next_resolve_ns_ = 0;
  Backoff pauses_{1 * kNsPerMs, 50 * kNsPerMs};
  int complaints_ = 0;      // refusals without a proof, since the last proof
  std::string note_;        // from the last attempt
  std::string before_;      // what became of a trusted host
  std::string claim_note_;  // why we are not the host
};

std::optional<Roster> RosterExchange::Seeker::poll() {
  if (!host_ && !joiner_) {
    if (now() < resume_ns_) return std::nullopt;
    begin_round();
  }
  return host_ ? serve() : go_on_visiting();
}

Awaited RosterExchange::Seeker::awaited() const {
  if (host_) return host_->awaited();
  if (joiner_) return joiner_->awaited();
  return {.until_ns = resume_ns_};
}

void RosterExchange::Seeker::begin_round() {
  resolve_again();
  Claim mine = plan_.may_host ? claim(endpoints_) : Claim{};
  if (mine.listener) {
    host_.emplace(plan_, endpoint_address_, std::move(mine), deadline_ns_);
    return;
  }
  claim_note_ = mine.fault;
  visited_ = 0;
  visit_next();
}

std::optional<Roster> RosterExchange::Seeker::serve() {
  try {
    return host_->poll();
  } catch (const Error& error) {
    if (before_.empty()) throw;
    throw Error(std::string(error.what()) + ". Before that, " + before_);
  }
}

/// Visits the next target, or begins the next round if there is none.
void RosterExchange::Seeker::visit_next() {
  joiner_.reset();
  if (visited_ < endpoints_.size()) {
    joiner_.emplace(plan_, endpoint_address_, endpoints_[visited_++], deadline_ns_);
    return;
  }
  if (now() >= deadline_ns_)
    throw failure("did not meet within " + std::to_string(plan_.timeout_ms) + " ms");
  pause();
}

std::optional<Roster> RosterExchange::Seeker::go_on_visiting() {
  while (joiner_) {
    std::optional<Attempt> attempt = joiner_->poll();
    if (!attempt || attempt->roster) return attempt ? std::move(attempt->roster) : std::nullopt;
    judge(*attempt);
    if (attempt->end != Attempt::End::unanswered)
      visited_ = endpoints_.size();  // a process answers there
    visit_next();
  }
  return std::nullopt;
}

void RosterExchange::Seeker::resolve_again() {
  if (now() < next_resolve_ns_ || (address_.is_unix() && !endpoints_.empty())) return;
  std::string fault;
  std::vector<SocketAddress> found = resolve(address_, fault);
  next_resolve_ns_ = now() + kResolveIntervalNs;
  if (found.empty()) note_ = fault;
  if (!found.empty()) endpoints_ = std::move(found);
}

void RosterExchange::Seeker::judge(const Attempt& attempt) {
  note_ = attempt.note;
  if (attempt.end != Attempt::End::unanswered) claim_note_.clear();  // the address has its host
  if (attempt.end == Attempt::End::lost) {
    before_ = attempt.note;
    pauses_.reset();
    complaints_ = 0;
  }
  if (attempt.end == Attempt::End::unproved && ++complaints_ == kComplaintsToBelieve)
    throw failure("cannot meet");
}

void RosterExchange::Seeker::pause() { resume_ns_ = std::min(deadline_ns_, pauses_.after(now())); }

Error RosterExchange::Seeker::failure(const std::string& why) const {
  std::string text = plan_.group_text() + " " + why + " at " + plan_.address + ": " + note_;
  if (!claim_note_.empty()) text += "; and " + claim_note_;
  if (!before_.empty() && before_ != note_) text += ". Before that, " + before_;
  return Error(text);
}

RosterExchange::RosterExchange(const Options& options, std::span<const std::byte> endpoint_address)
    : seeker_(std::make_unique<Seeker>(options, endpoint_address)) {}

RosterExchange::~RosterExchange() = default;

std::optional<Roster> RosterExchange::poll() { return seeker_->poll(); }

Awaited RosterExchange::awaited() const { return seeker_->awaited(); }

Roster meet(const Options& options, std::span<const std::byte> endpoint_address) {
  for (RosterExchange rendezvous(options, endpoint_address);;) {
    if (std::optional<Roster> roster = rendezvous.poll()) return std::move(*roster);
    rendezvous.awaited().wait();
  }
}

void check(const Options& options) {
  static_cast<void>(plan_from(options, {}));
  static_cast<void>(parse_address(options.address));
}

}  // namespace dunlin::rendezvous
