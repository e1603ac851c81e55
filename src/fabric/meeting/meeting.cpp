#include "fabric/meeting/meeting.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <dunlin/error.hpp>

#include "fabric/meeting/guest.hpp"
#include "fabric/meeting/host.hpp"
#include "fabric/meeting/waiting.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kShortestPauseNs = 1 * kNsPerMs;
constexpr std::uint64_t kLongestPauseNs = 50 * kNsPerMs;
/// A name server is not asked more often.
constexpr std::uint64_t kResolveIntervalNs = 500 * kNsPerMs;
/// Whoever holds the address and is no host of ours may be about to leave, and cannot prove that we
/// should: so it is believed only when it insists, for about a second.
constexpr int kComplaintsToBelieve = 20;

std::uint64_t now() { return read_clock_ns(CLOCK_MONOTONIC); }

/// Goes to the address of the meeting, again and again, until it is the host or has met one.
class Seeker {
 public:
  Seeker(const Plan& plan, Bytes card)
      : plan_(plan),
        card_(card),
        address_(parse_address(plan.address)),
        deadline_ns_(now() + plan.timeout_ms * kNsPerMs) {}

  Roster run();

 private:
  [[nodiscard]] Roster serve(Claim claim);
  void resolve_again();
  [[nodiscard]] std::optional<Roster> visit_all();
  void judge(const Attempt& attempt);
  void pause();
  [[nodiscard]] Error failure(const std::string& why) const;

  const Plan& plan_;
  Bytes card_;
  Address address_;
  std::uint64_t deadline_ns_;
  std::vector<Endpoint> endpoints_;
  std::uint64_t next_resolve_ns_ = 0;
  std::uint64_t pause_ns_ = kShortestPauseNs;
  int complaints_ = 0;      // of those who proved nothing, since somebody did
  std::string note_;        // of the last attempt
  std::string before_;      // what became of a host that we trusted
  std::string claim_note_;  // why we are not the host
};

Roster Seeker::run() {
  while (true) {
    resolve_again();
    Claim mine = claim(endpoints_);
    if (mine.listener) return serve(std::move(mine));
    claim_note_ = mine.fault;
    if (std::optional<Roster> roster = visit_all()) return std::move(*roster);
    if (now() >= deadline_ns_)
      throw failure("did not meet within " + std::to_string(plan_.timeout_ms) + " ms");
    pause();
  }
}

Roster Seeker::serve(Claim claim) {
  try {
    return Host(plan_, card_, std::move(claim), deadline_ns_).run();
  } catch (const Error& error) {
    if (before_.empty()) throw;
    throw Error(std::string(error.what()) + ". Before that, " + before_);
  }
}

void Seeker::resolve_again() {
  if (now() < next_resolve_ns_ || (address_.is_unix() && !endpoints_.empty())) return;
  std::string fault;
  std::vector<Endpoint> found = resolve(address_, fault);
  next_resolve_ns_ = now() + kResolveIntervalNs;
  if (found.empty()) note_ = fault;
  if (!found.empty()) endpoints_ = std::move(found);
}

std::optional<Roster> Seeker::visit_all() {
  for (const Endpoint& endpoint : endpoints_) {
    Attempt attempt = visit(plan_, card_, endpoint, deadline_ns_);
    if (attempt.roster) return std::move(attempt.roster);
    judge(attempt);
    if (attempt.end != Attempt::End::unanswered) break;  // there is somebody
  }
  return std::nullopt;
}

void Seeker::judge(const Attempt& attempt) {
  note_ = attempt.note;
  if (attempt.end != Attempt::End::unanswered) claim_note_.clear();  // it has its host
  if (attempt.end == Attempt::End::lost) {
    before_ = attempt.note;
    pause_ns_ = kShortestPauseNs;
    complaints_ = 0;
  }
  if (attempt.end == Attempt::End::unproved && ++complaints_ == kComplaintsToBelieve)
    throw failure("cannot meet");
}

void Seeker::pause() {
  std::vector<pollfd> nothing;
  sleep_in_poll(nothing, std::min(deadline_ns_, now() + pause_ns_));
  pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
}

Error Seeker::failure(const std::string& why) const {
  std::string text = plan_.group_text() + " " + why + " at " + plan_.address + ": " + note_;
  if (!claim_note_.empty()) text += "; and " + claim_note_;
  if (!before_.empty() && before_ != note_) text += ". Before that, " + before_;
  return Error(text);
}

}  // namespace

Roster meet(const Options& options, std::span<const std::byte> card) {
  const Plan plan = plan_from(options, card);
  return Seeker(plan, card).run();
}

void check(const Options& options) {
  static_cast<void>(plan_from(options, {}));
  static_cast<void>(parse_address(options.address));
}

}  // namespace dunlin::meeting
