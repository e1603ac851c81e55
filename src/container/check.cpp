#include "container/check.hpp"

#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"

namespace dunlin {

using container::Check;
using container::Checker;
using container::Site;
using remote::Status;

/// Announces the call, and looks at the others'; or waits until its retraction is placed. Whether
/// the call itself is next.
bool ContainerOperation::passes_check() noexcept {
  Check& check = *check_;
  Checker& checker = check.checker;
  const auto fail = [&] {  // what a call came to stays, although its home has died since
    end(check.stage < Check::Stage::lower ? Status::lost : check.result);
  };
  const auto post = [&](const Operation& operation, Check::Stage next) {
    const Site::Posted posted =
        checker.site_.post(check.home, std::span(&operation, 1), check.accepted);
    if (posted == Site::Posted::all) check.stage = next;
    if (posted == Site::Posted::never) fail();
    return posted == Site::Posted::all && completion_.finished();
  };
  for (;;) {
    if (completion_.failed() && check.stage != Check::Stage::allowed) {
      fail();
      return false;
    }
    switch (check.stage) {
      case Check::Stage::idle:
      case Check::Stage::allowed:
        return true;
      case Check::Stage::raise:
        if (const Status fault = checker.part_.fault(check.home); fault != Status::ok) {
          end(fault);
          return false;
        }
        if (checker.count_of(check.home, check.call) == container::record::kMost) {
          hub_.look_again_soon();
          return false;
        }
        if (!post(checker.change(check.home, check.call, true).notify(completion_),
                  Check::Stage::raised)) {
          count_announcement();
          return false;
        }
        count_announcement();
        break;
      case Check::Stage::raised:
        check.stage = Check::Stage::see;
        break;
      case Check::Stage::see:
        if (!post(read(check.home, checker.site_.region(), 0, check.records.data(),
                       check.records.size() * sizeof(std::uint64_t))
                      .notify(completion_),
                  Check::Stage::seen))
          return false;
        break;
      case Check::Stage::seen: {
        std::string sentence = checker.contradiction(check.records, check.home, check.call);
        check.stage = Check::Stage::allowed;
        if (sentence.empty()) return true;
        hub_.broken_promise = std::move(sentence);
        finish(Status::broken_promise);
        return false;
      }
      case Check::Stage::lower:
        if (!post(
                checker.change(check.home, check.call, false).notify(completion_, Notify::remotely),
                Check::Stage::lowered))
          return false;
        break;
      case Check::Stage::lowered:
        settle_check();
        end(check.result);
        return false;
    }
  }
}

void ContainerOperation::count_announcement() noexcept {
  Check& check = *check_;
  if (check.stage != Check::Stage::raised || check.counted) return;
  check.counted = true;
  ++check.checker.count_of(check.home, check.call);
}

/// The announcement is gone, or its retraction is posted.
void ContainerOperation::settle_check() noexcept {
  Check& check = *check_;
  if (std::exchange(check.counted, false)) --check.checker.count_of(check.home, check.call);
  check.stage = Check::Stage::idle;
}

void ContainerOperation::begin_check(Rank home, std::uint32_t call, Promise promise) noexcept {
  Check& check = *check_;
  check.home = home;
  check.call = {call, promise};
  check.accepted = 0;
  check.stage = Check::Stage::raise;
}

bool ContainerOperation::check_not_begun() const noexcept {
  return check_->stage == Check::Stage::raise;
}

/// CON-C3: the call ends when its retraction is placed.
void ContainerOperation::finish_checked(Status status) noexcept {
  Check& check = *check_;
  const bool can_retract = check.stage == Check::Stage::allowed && !completion_.failed() &&
                           check.checker.site_.fault(check.home) == Status::ok;
  if (!can_retract || is_injected(FaultInjection::retraction_is_not_awaited)) return end(status);
  check.result = status;
  check.stage = Check::Stage::lower;
  static_cast<void>(passes_check());
}

/// An announcement that stands when the operation has ended is retracted in Checker::poll().
void ContainerOperation::give_up_check() noexcept {
  Check& check = *check_;
  const bool stands = check.counted && check.stage != Check::Stage::lowered;
  if (stands) {
    check.checker.owed_.push_back({check.home, check.call});
    hub_.look_again_soon();
  }
  settle_check();
}

namespace container {

void CheckDeleter::operator()(Check* check) const noexcept { delete check; }

Checker::Checker(Hub& hub, const CheckedCalls& calls, const std::string& name, const Site& part)
    : hub_(hub),
      part_(part),
      calls_(calls),
      name_(name),
      site_(hub, "check", name, hub.progress.size() * record::kBytes,
            "check of a " + std::string(calls.kind)),
      under_way_(std::size_t{hub.progress.size()} * record::kPromises * record::kCalls) {
  site_.announce();
}

std::unique_ptr<Check, CheckDeleter> Checker::make_check() {
  return std::unique_ptr<Check, CheckDeleter>(
      new Check{.checker = *this, .records = std::vector<std::uint64_t>(site_.own().size() / 8)});
}

Operation Checker::change(Rank home, CheckedCall call, bool up) const noexcept {
  const std::uint64_t one = record::one(call.call);
  return fetch_add(
      home, site_.region(),
      hub_.fabric.rank() * record::kBytes + static_cast<std::uint64_t>(call.promise) * 8,
      up ? one : 0 - one, nullptr);
}

/// A peer may have written the word: any value of it is some calls, or none.
std::string Checker::contradiction(std::span<const std::uint64_t> records, Rank home,
                                   CheckedCall mine) const {
  const bool writes = calls_.writes[mine.call];
  for (Rank rank = 0; rank < hub_.progress.size(); ++rank) {
    if (rank == hub_.fabric.rank() || hub_.gone(rank)) continue;
    for (std::uint32_t p = 0; p < record::kPromises; ++p)
      for (std::uint32_t call = 0; call < record::kCalls; ++call) {
        const auto theirs = static_cast<Promise>(p);
        if (record::count_of(records[rank * record::kPromises + p], call) == 0) continue;
        const bool mine_broken = !allows(mine.promise, calls_.writes[call]);
        if (!mine_broken && allows(theirs, writes)) continue;
        const auto of = [&](std::uint32_t one, Rank member, Promise promise) {
          return std::string(calls_.names[one].empty() ? "a call" : calls_.names[one]) +
                 " of member '" + hub_.fabric.member_name(member) + "' (promise '" +
                 std::string(name_of(promise)) + "')";
        };
        return std::string(calls_.kind) + " '" + name_ + "', part of member '" +
               hub_.fabric.member_name(home) +
               "': " + of(mine.call, hub_.fabric.rank(), mine.promise) + " began while " +
               of(call, rank, theirs) + " was under way; '" +
               std::string(name_of(mine_broken ? mine.promise : theirs)) + "' forbids that";
      }
  }
  return {};
}

bool Checker::allows_here(CheckedCall mine) {
  std::vector<std::uint64_t> records(site_.own().size() / 8);
  memory::fetch(records.data(), site_.memory(), site_.own().size());
  std::string sentence = contradiction(records, hub_.fabric.rank(), mine);
  if (sentence.empty()) return true;
  hub_.broken_promise = std::move(sentence);
  return false;
}

void Checker::reserve_owed() { owed_.reserve(owed_.size() + announced_ + 1); }

void Checker::owe(Rank home, CheckedCall call) noexcept {
  owed_.push_back({home, call});
  hub_.look_again_soon();
}

std::size_t Checker::poll() {
  std::size_t done = 0;
  while (!owed_.empty()) {
    const Owed& owed = owed_.back();
    const Operation lower = change(owed.home, owed.call, false);
    std::size_t accepted = 0;
    if (site_.post(owed.home, std::span(&lower, 1), accepted) == Site::Posted::later) break;
    owed_.pop_back();
    ++done;
  }
  return done;
}

}  // namespace container
}  // namespace dunlin
