#include "fabric/meeting/meeting.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <dunlin/error.hpp>

#include "fabric/meeting/guest.hpp"
#include "fabric/meeting/host.hpp"

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

}  // namespace

/// Goes to the address of the meeting, again and again, until it is the host or has met one.
class Meeting::Seeker {
 public:
  Seeker(const Options& options, Bytes card)
      : plan_(plan_from(options, card)),
        card_(card.begin(), card.end()),
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
  const std::vector<std::byte> card_;
  Address address_;
  std::uint64_t deadline_ns_;
  std::vector<Endpoint> endpoints_;
  std::size_t visited_ = 0;     // of them, in this round
  std::optional<Guest> guest_;  // at the last of those
  std::optional<Host> host_;
  std::uint64_t resume_ns_ = 0;  // with the next round
  std::uint64_t next_resolve_ns_ = 0;
  std::uint64_t pause_ns_ = kShortestPauseNs;
  int complaints_ = 0;      // of those who proved nothing, since somebody did
  std::string note_;        // of the last attempt
  std::string before_;      // what became of a host that we trusted
  std::string claim_note_;  // why we are not the host
};

std::optional<Roster> Meeting::Seeker::poll() {
  if (!host_ && !guest_) {
    if (now() < resume_ns_) return std::nullopt;
    begin_round();
  }
  return host_ ? serve() : go_on_visiting();
}

Awaited Meeting::Seeker::awaited() const {
  if (host_) return host_->awaited();
  if (guest_) return guest_->awaited();
  return {.until_ns = resume_ns_};
}

void Meeting::Seeker::begin_round() {
  resolve_again();
  Claim mine = plan_.may_host ? claim(endpoints_) : Claim{};
  if (mine.listener) {
    host_.emplace(plan_, card_, std::move(mine), deadline_ns_);
    return;
  }
  claim_note_ = mine.fault;
  visited_ = 0;
  visit_next();
}

std::optional<Roster> Meeting::Seeker::serve() {
  try {
    return host_->poll();
  } catch (const Error& error) {
    if (before_.empty()) throw;
    throw Error(std::string(error.what()) + ". Before that, " + before_);
  }
}

/// The next endpoint; if there is none, the next round.
void Meeting::Seeker::visit_next() {
  guest_.reset();
  if (visited_ < endpoints_.size()) {
    guest_.emplace(plan_, card_, endpoints_[visited_++], deadline_ns_);
    return;
  }
  if (now() >= deadline_ns_)
    throw failure("did not meet within " + std::to_string(plan_.timeout_ms) + " ms");
  pause();
}

std::optional<Roster> Meeting::Seeker::go_on_visiting() {
  while (guest_) {
    std::optional<Attempt> attempt = guest_->poll();
    if (!attempt || attempt->roster) return attempt ? std::move(attempt->roster) : std::nullopt;
    judge(*attempt);
    if (attempt->end != Attempt::End::unanswered)
      visited_ = endpoints_.size();  // there is somebody
    visit_next();
  }
  return std::nullopt;
}

void Meeting::Seeker::resolve_again() {
  if (now() < next_resolve_ns_ || (address_.is_unix() && !endpoints_.empty())) return;
  std::string fault;
  std::vector<Endpoint> found = resolve(address_, fault);
  next_resolve_ns_ = now() + kResolveIntervalNs;
  if (found.empty()) note_ = fault;
  if (!found.empty()) endpoints_ = std::move(found);
}

void Meeting::Seeker::judge(const Attempt& attempt) {
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

void Meeting::Seeker::pause() {
  resume_ns_ = std::min(deadline_ns_, now() + pause_ns_);
  pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
}

Error Meeting::Seeker::failure(const std::string& why) const {
  std::string text = plan_.group_text() + " " + why + " at " + plan_.address + ": " + note_;
  if (!claim_note_.empty()) text += "; and " + claim_note_;
  if (!before_.empty() && before_ != note_) text += ". Before that, " + before_;
  return Error(text);
}

Meeting::Meeting(const Options& options, std::span<const std::byte> card)
    : seeker_(std::make_unique<Seeker>(options, card)) {}

Meeting::~Meeting() = default;

std::optional<Roster> Meeting::poll() { return seeker_->poll(); }

Awaited Meeting::awaited() const { return seeker_->awaited(); }

Roster meet(const Options& options, std::span<const std::byte> card) {
  for (Meeting meeting(options, card);;) {
    if (std::optional<Roster> roster = meeting.poll()) return std::move(*roster);
    meeting.awaited().wait();
  }
}

void check(const Options& options) {
  static_cast<void>(plan_from(options, {}));
  static_cast<void>(parse_address(options.address));
}

}  // namespace dunlin::meeting
