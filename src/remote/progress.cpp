#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/remote/progress.hpp>

#include "assert.hpp"
#include "fabric/processors.hpp"
#include "fabric/thread_guard.hpp"

namespace dunlin::remote {
namespace {

/// Polls in vain before the thread sleeps: some 20 us.
constexpr std::uint32_t kPollsBeforeSleep = 400;
/// Where members share processors, the one that is waited for may need this one.
constexpr std::uint32_t kPollsPerYield = 16;
/// Of the waits for what has ended already, one in so many polls.
constexpr std::uint32_t kWaitsPerPoll = 64;
/// A sleep ends at least this often, whatever rings.
constexpr std::uint64_t kLongestSleepNs = 10'000'000;
/// How often a killed process is asked after.
constexpr std::uint64_t kFenceIntervalNs = 100'000;
/// On a simulated fabric each poll lets virtual time pass; if nothing comes of so many, it is that
/// of a node whose round cannot end before the wait does.
constexpr std::uint32_t kSimulatedPatience = 10'000'000;

}  // namespace

Progress::Progress(Fabric& fabric)
    : fabric_(fabric),
      fixed_(std::make_unique<FixedMembers>(fabric)),
      members_(*fixed_),
      generation_(members_.generation()),
      told_generation_(generation_),
      size_(members_.founders()),
      present_(members_.capacity(), true),
      known_(capacity()),
      come_(capacity()),
      has_been_(present_) {}

Progress::Progress(Fabric& fabric, Membership& members, ProgressOptions options)
    : fabric_(fabric),
      members_(members),
      options_(options),
      generation_(members.generation()),
      told_generation_(generation_),
      size_(members.founders()),
      present_(members.capacity()),
      come_(size_) {
  DUNLIN_ASSERT_ALWAYS(size_ <= capacity(), "the founders have the first of all ranks");
  for (Rank rank = 0; rank < capacity(); ++rank)
    if (members.contains(rank)) come_ = std::max(come_, rank + 1);
  look_who_is_present();
  has_been_ = present_;
  was_stopped_ = stopped();
}

Progress::~Progress() {
  DUNLIN_ASSERT_ALWAYS(!polling_, "REM-4: no callback destroys the Progress that runs it");
  calls_.end_all(Status::abandoned);
  DUNLIN_ASSERT(in_flight() == 0, "REM-3: nothing is under way without a progress");
}

void Progress::look_who_is_present() {
  DUNLIN_ASSERT_ALWAYS(to_fence_.empty() && come_ >= known_,
                       "REM-13: members that are gone are fenced before the parts hear of it");
  known_ = come_;
  for (Rank rank = 0; rank < capacity(); ++rank) present_[rank] = members_.contains(rank);
}

void Progress::add(Part& part) {
  DUNLIN_ASSERT_ALWAYS(std::ranges::find(parts_, &part) == parts_.end(),
                       "REM-13: a part hears of each change once");
  parts_.push_back(&part);
}

void Progress::remove(Part& part) noexcept { std::erase(parts_, &part); }

void Progress::check_is_only(const std::string& who, const std::string& region) const {
  if (!fabric_.has_region(region)) return;
  throw Error(who +
              ": this process has one of this name already on this fabric, and the other members "
              "would find one of the two only; give another name, or destroy the other one first");
}

const std::string& Progress::forked_text() noexcept {
  static const std::string text =
      "this process was forked by a member, and is none itself: join after the fork";
  return text;
}

Waits Progress::waits() const { return members_.waits(); }

std::size_t Progress::poll() {
  DUNLIN_ONE_THREAD(&fabric_);
  if (polling_) return 0;
  struct Polling {
    explicit Polling(bool& flag) : polling(flag) { polling = true; }
    ~Polling() { polling = false; }
    bool& polling;
  } const polling(polling_);
  if (fabric_.is_forked()) return calls_.advance(true);
  // The members come before the calls to the places in the queues that this poll frees.
  std::size_t done = fabric_.poll();
  done += members_.poll();
  if (members_.generation() != generation_) follow_members();
  if (generation_ != told_generation_) done += fence_members();
  was_stopped_ = stopped();
  for (std::size_t i = 0; i < parts_.size(); ++i) done += parts_[i]->poll_part();
  return done + calls_.advance(was_stopped());
}

/// The group's decision holds for this process's connections, too (FAB-X1, FAB-X4). A member that
/// the fabric did not take for failed has left a further group by itself; it, too, must change
/// nothing here any more, so it parts from this fabric.
void Progress::follow_members() {
  DUNLIN_ASSERT_ALWAYS(members_.generation() > generation_, "the members change in one order");
  generation_ = members_.generation();
  for (Rank rank = 0; rank < capacity(); ++rank) {
    if (members_.contains(rank)) {
      DUNLIN_ASSERT(has_been_[rank] || rank >= come_, "REM-13: no rank comes twice");
      has_been_[rank] = true;
      come_ = std::max(come_, rank + 1);
      continue;
    }
    if (!has_been_[rank]) continue;  // perhaps it is just coming
    has_been_[rank] = false;         // and no rank comes twice
    const Parting parting = fabric_.failed(rank) ? Parting::failed : Parting::left;
    fabric_.expel(rank, "the members have agreed that it is none of them any more", parting);
    to_fence_.push_back(rank);
  }
}

/// The parts go on without those that are gone once nothing of them reaches our memory any more.
std::size_t Progress::fence_members() {
  std::erase_if(to_fence_, [&](Rank rank) {
    const Fenced fenced = fabric_.fence(rank);
    if (fenced == Fenced::never && !options_.accept_unfenced && unfenced_.empty())
      unfenced_ = "member " + std::to_string(rank) + " '" + fabric_.member_name(rank) +
                  "' was taken for dead, and this process can neither kill it nor see whether it "
                  "has ended, so it may still change memory here; give all members one user and "
                  "one pid namespace, or set ProgressOptions::accept_unfenced";
    return fenced != Fenced::not_yet;
  });
  if (!to_fence_.empty()) {
    fabric_.wake_at(fabric_.now_ns() + kFenceIntervalNs);
    return 0;
  }
  told_generation_ = generation_;
  look_who_is_present();
  DUNLIN_ASSERT(std::ranges::equal(present_, has_been_),
                "REM-13: the parts hear that a member is gone once it is expelled and fenced");
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->members_changed();
  return 1;
}

/// A program whose operations all end at once, as on shm, might never poll otherwise: it would not
/// notice deaths, and be taken for dead.
void Progress::poll_in_passing() {
  if (++passed_ % kWaitsPerPoll == 0) poll();
}

/// Calls look at was_stopped_ before they begin, and waits at polling_: so that a function runs
/// costs them nothing.
LocalWork::LocalWork(Progress& progress) noexcept
    : progress_(progress), was_stopped_(progress.was_stopped_), was_polling_(progress.polling_) {
  DUNLIN_ASSERT(!progress.works_locally_,
                "a function that runs for another member calls no further one");
  progress_.was_stopped_ = true;
  progress_.polling_ = true;
  progress_.works_locally_ = true;
  progress_.broke_local_work_ = false;
}

LocalWork::~LocalWork() {
  progress_.was_stopped_ = was_stopped_;
  progress_.polling_ = was_polling_;
  progress_.works_locally_ = false;
}

void Progress::check_no_local_work() {
  if (!works_locally_) return;
  broke_local_work_ = true;
  throw Error(
      "remote: a function that runs for another member can neither begin a call nor wait for one; "
      "let it return, and begin the call in the program's own loop, or at the member that asked");
}

Status Progress::why_none_begins() noexcept {
  if (!works_locally_) return Status::stopped;
  broke_local_work_ = true;
  return Status::not_allowed;
}

void Progress::check_may_wait() {
  check_no_local_work();
  if (!polling_ && !fabric_.in_handler()) return;
  throw Error(
      "remote: an operation cannot be waited for inside a handler or callback, or in a coroutine "
      "that poll() has resumed: it could only end when that returns; use then() or co_await");
}

void Progress::pause(std::uint32_t fruitless, std::uint64_t deadline_ns) {
  if (fabric_.cpu_costs() != nullptr) {
    if (fruitless >= kSimulatedPatience)
      throw Error(
          "remote: the program of a simulated node cannot wait for an operation within a round; "
          "use then() or co_await, or wait outside World::run_until");
    return;
  }
  if (fruitless < kPollsBeforeSleep) {
    static const std::uint32_t processors = usable_processors();
    const bool yields = fruitless % kPollsPerYield == kPollsPerYield - 1;
    if (yields && fabric_.host_members() > processors) sched_yield();
    return;
  }
  const std::uint64_t now = fabric_.now_ns();
  if (now >= deadline_ns) return;
  fabric_.prepare_sleep();
  if (poll() == 0) {
    fabric_.sleep(std::min(kLongestSleepNs, deadline_ns - now));
  } else {
    fabric_.cancel_sleep();
  }
}

bool wait_all(std::span<CallBase* const> calls, std::uint64_t timeout_ns) {
  std::uint64_t deadline_ns = 0;
  std::uint32_t fruitless = 0;
  for (const CallBase* const call : calls) {
    if (!call->begun()) continue;
    Progress& progress = call->progress();
    if (call->finished()) {
      progress.poll_in_passing();
      continue;
    }
    progress.check_may_wait();
    const std::uint64_t now = progress.fabric_.now_ns();
    if (deadline_ns == 0) deadline_ns = timeout_ns < kForever - now ? now + timeout_ns : kForever;
    while (!call->finished()) {
      fruitless = progress.poll() == 0 ? fruitless + 1 : 0;
      if (call->finished()) break;
      if (deadline_ns != kForever && progress.fabric_.now_ns() >= deadline_ns) return false;
      progress.pause(fruitless, deadline_ns);
    }
  }
  return true;
}

}  // namespace dunlin::remote
