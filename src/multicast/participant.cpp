#include "multicast/participant.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "fabric/names.hpp"
#include "fabric/sleeping.hpp"
#include "fabric/thread_guard.hpp"
#include "log/posix_disk.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin {

using multicast::Delivery;
using multicast::DurableLog;
using multicast::OpenView;
using multicast::SendResult;
using multicast::SubgroupView;

namespace {

/// A participant rests after so many polls that found nothing, while the user asked for nothing.
constexpr std::uint64_t kFruitlessUntilRest = 64;
constexpr std::uint64_t kNsPerMs = 1'000'000;

[[nodiscard]] MulticastOptions checked(MulticastOptions options, const std::string& who) {
  const bool durable = options.mode == multicast::Mode::durable;
  if (durable && options.log_directory.empty())
    throw Error(who + "a durable one needs a directory for its log: give log_directory");
  const bool no_log = options.log_directory.empty() && options.log_given_up.empty() &&
                      options.log_trim.every_bytes == 0 && !options.log_quorum;
  if (!durable && !no_log)
    throw Error(
        who + "log_directory, log_given_up, log_trim and log_quorum are for the mode durable only");
  for (const std::string& name : options.log_given_up) check_member_name(name);
  return options;
}

/// Null but in the durable mode.
[[nodiscard]] std::unique_ptr<DurableLog> open_log(const MulticastOptions& options,
                                                   const std::string& name) {
  if (options.mode != multicast::Mode::durable) return nullptr;
  return std::make_unique<DurableLog>(
      std::make_unique<multicast::Journal>(options.log_disk ? options.log_disk : log::posix_disk(),
                                           options.log_directory, name,
                                           multicast::Journal::segment_bytes_for(options.log_trim)),
      options.log_given_up, options.log_trim, options.log_quorum);
}

[[nodiscard]] std::vector<std::string> names_of(const Fabric& fabric,
                                                const std::vector<Rank>& members) {
  std::vector<std::string> names;
  for (const Rank rank : members) {
    const std::string& name = fabric.member_name(rank);
    names.push_back(name.empty() ? std::to_string(rank) : name);
  }
  return names;
}

}  // namespace

Multicast::Participant::Participant(Group& group, const std::string& subgroup,
                                    MulticastOptions options)
    : group_(group),
      process_(getpid()),
      name_(subgroup),
      who_("subgroup '" + subgroup + "': "),
      options_(checked(std::move(options), who_)),
      log_(open_log(options_, group.name() + "/" + subgroup)),
      state_(who_) {}

Multicast::Participant::~Participant() {
  static_cast<void>(hand_over_at_end(options_.hand_over_ms));
  if (at_run_time_ && !has_left_) group_.detach_subgroup(*this);
  if (log_) log_->end();
}

/// GRP-D2: members compare their options before they connect any memory.
void Multicast::Participant::join(SubgroupJoin join) {
  if (options_.log_quorum) {
    if (join.founders.empty())
      throw Error(who_ +
                  "log_quorum needs SubgroupJoin::founders, the members that may have its log: a "
                  "member with an empty log would begin a new history without them");
    log_->wait_for(std::exchange(join.founders, {}));
  }
  join.options = multicast::describe_common({.name = name_,
                                             .members = {},
                                             .senders = {},
                                             .mode = options_.mode,
                                             .ring_bytes = options_.ring_bytes,
                                             .window_messages = options_.window_messages,
                                             .switches = options_.switches,
                                             .log_quorum = options_.log_quorum}) +
                 (join.options.empty() ? "" : ", ") + join.options;
  group_.join_subgroup(name_, *this, std::move(join));
  at_run_time_ = true;
}

// --- from view to view ---------------------------------------------------------------------------

multicast::SubgroupViewOptions Multicast::Participant::view_options(
    const Subgroup& subgroup) const {
  return {.name = subgroup.name,
          .generation = subgroup.generation(),
          .members = subgroup.members,
          .senders = subgroup.senders,
          .mode = options_.mode,
          .ring_bytes = options_.ring_bytes,
          .window_messages = options_.window_messages,
          .switches = options_.switches,
          .log_quorum = options_.log_quorum,
          .journal = log_ ? &log_->journal() : nullptr};
}

void Multicast::Participant::begin(Fabric& fabric, const Subgroup& subgroup) {
  DUNLIN_ASSERT_ALWAYS(views_.empty() || views_.present().view->over(),
                       "GRP-V1: a view is finished before the next one begins");
  if (without_quorum_ && !at_run_time_ && !others_left()) throw Error(why_without_quorum());
  if (upcall_ || state_.awaited()) views_.drop_all();
  if (log_ && !views_.empty()) views_.present().first_record = log_->first_message();
  fruitless_polls_ = 0;
  multicast::Upcall upcall;
  if (upcall_) upcall = [this](std::span<const Delivery> batch) { hand_up(batch); };
  const OpenView& opened = views_.open(
      {.subgroup = subgroup,
       .names = names_of(fabric, subgroup.members),
       .view = std::make_unique<SubgroupView>(fabric, view_options(subgroup), std::move(upcall))});
  state_.begin(subgroup.lacks_state);
  if (without_quorum_ && !at_run_time_) {
    why_left_ = why_ended_by_leaves();
    present().wedge();
  } else if (log_ && !without_quorum_) {
    log_->begin(fabric, subgroup, opened.names);
  }
  present().hold(state_.awaited());
  if (const MembersHandler handler = members_handler_)
    upcall_.call_and_keep([&] { handler(subgroup); });  // the next poll() throws its exception
  resending_.send_in(present());
}

std::size_t Multicast::Participant::poll() {
  DUNLIN_ASSERT(!views_.empty() && !views_.present().view->over(),
                "GRP-V1: a participant is polled between begin() and finish()");
  upcall_.throw_kept();
  if (without_quorum_) [[unlikely]] {
    give_up(why_without_quorum());
    return 1;
  }
  if (resending_.pending()) [[unlikely]]
    resending_.send_in(present());
  // A caller that takes one message at a time must not sleep while there are more, or before it has
  // said that there is room.
  std::size_t done = std::exchange(next_found_, false) ? 1 : 0;
  if (present().differs_from_first()) [[unlikely]]
    leave_because_of_options();
  if (log_) {
    done += log_->poll(present().counters().records_delivered > 0);
    leave_if(log_->failure());  // the others can go on without this member
    if (!log_->begun()) return done;
  }
  std::size_t found = present().poll();
  if (refused_bytes_) [[unlikely]]
    found += tell_of_room();
  if (log_ && log_->trim_is_due()) [[unlikely]]
    trim_log();
  if (found > 0 || log_)
    fruitless_polls_ = 0;
  else
    ++fruitless_polls_;
  return done + found;
}

bool Multicast::Participant::rests() const noexcept {
  return fruitless_polls_ >= kFruitlessUntilRest;
}

std::string Multicast::Participant::why_without_quorum() const {
  return who_ +
         "the members of its last view that go on are no quorum of it, so this member stops "
         "(log_quorum): " +
         (at_run_time_ ? "join it anew; it then waits for more of them"
                       : "start it anew, with more of them");
}

/// Whether all members that this one would need for a quorum have gone because they asked to.
bool Multicast::Participant::others_left() const {
  const std::vector<std::string>& left = group_.view().left;
  return std::ranges::all_of(
      gone_, [&](const std::string& name) { return std::ranges::find(left, name) != left.end(); });
}

std::string Multicast::Participant::why_ended_by_leaves() const {
  return who_ +
         "the other members have left, and those that stay are no quorum of the last view "
         "(log_quorum), so the subgroup has ended: start a quorum of its members to begin it again";
}

/// MC-Q2: only a quorum of the view's members goes on.
bool Multicast::Participant::may_go_on(std::span<const Rank> staying) const {
  if (!options_.log_quorum || !log_->begun()) return true;
  const std::vector<Rank>& members = views_.present().subgroup.members;
  return multicast::are_quorum(staying.size(), members.size(),
                               std::ranges::find(staying, members.front()) != staying.end());
}

void Multicast::Participant::finish(std::span<const std::uint64_t> trim,
                                    std::span<const Rank> staying) {
  DUNLIN_ASSERT_ALWAYS(!views_.empty(), "GRP-V1: what has not begun is not finished");
  if (!without_quorum_ && !may_go_on(staying)) {
    without_quorum_ = true;
    const OpenView& ended = views_.present();
    for (std::size_t i = 0; i < ended.names.size(); ++i)
      if (std::ranges::find(staying, ended.subgroup.members[i]) == staying.end())
        gone_.push_back(ended.names[i]);
  }
  if (log_) log_->end();
  const auto rest = without_quorum_ ? SubgroupView::Rest::withhold : SubgroupView::Rest::deliver;
  SubgroupView::Remains remains =
      upcall_.keep_exceptions_during([&] { return present().finish(trim, rest); });
  resending_.add(std::move(remains.again));
  views_.present().add_beyond(remains.ahead);
  if (options_.mode == multicast::Mode::unordered) views_.present().add_state_beyond(trim);
  upcall_.throw_kept();
}

/// Nothing would ever be delivered beside members with other options.
void Multicast::Participant::leave_because_of_options() {
  try {
    present().check();
  } catch (const Error& e) {
    leave_if("its MulticastOptions are not those of the subgroup's first member: " +
             std::string(e.what()));
  }
}

void Multicast::Participant::leave_if(const std::string& failure) {
  if (failure.empty()) return;
  const std::string what = at_run_time_ ? who_ + "this member leaves it: " + failure
                                        : "this member leaves the group: " + failure;
  give_up(what);
  throw Error(what);
}

void Multicast::Participant::give_up(const std::string& why) {
  hand_over_until_ns_ = 1;  // the time is up: what was not agreed on so far never will be
  if (!at_run_time_) return group_.leave();
  group_.detach_subgroup(*this);
  left(why);
}

void Multicast::Participant::left(const std::string& why) {
  has_left_ = true;
  why_left_ = why;
  if (log_) log_->end();
}

// --- members that come in ------------------------------------------------------------------------

std::optional<std::vector<std::byte>> Multicast::Participant::give_state() {
  if (views_.size() != 1) return std::nullopt;  // next() has messages of an earlier view
  const bool all_handed_up = present().handed_up().has_value();
  present().find_one_by_one(!all_handed_up);
  if (!all_handed_up) return std::nullopt;
  if (log_ && !log_->ever_begun()) return std::nullopt;  // the log's messages belong to the state
  return state_.give(views_.present());
}

void Multicast::Participant::take_state(std::span<const std::byte> state) {
  try {
    state_.take(state, views_.present());
    if (log_) log_->skip_replay();
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  } catch (...) {
    give_up("its handler that loads the state threw what is no std::exception");
    throw;
  }
  present().hold(false);
}

// --- sending -------------------------------------------------------------------------------------

/// Why send() can take nothing, although there may be room.
SendResult Multicast::Participant::why_not_send() const noexcept {
  if (group_.ended() || has_left_ || leaving_) return SendResult::ended;
  if (views_.empty()) return SendResult::wedged;
  if (!views_.present().view->sends()) return SendResult::not_a_sender;
  if (state_.awaited()) return SendResult::waiting_for_state;
  return resending_.pending() ? SendResult::no_room : SendResult::wedged;
}

/// Calls the handler once, so that one that is refused again hears of room again.
std::size_t Multicast::Participant::tell_of_room() {
  if (!has_room(*refused_bytes_)) return 0;
  refused_bytes_.reset();
  // The handler may set another one, and must not destroy itself by that.
  if (const auto handler = room_handler_) handler();
  return 1;
}

// --- handing over what was sent ------------------------------------------------------------------

bool Multicast::Participant::acknowledged() {
  DUNLIN_ONE_THREAD(&group_.fabric());
  if (resending_.pending()) return false;
  return views_.empty() || present().over() || present().handed_over();
}

/// As nothing more is sent, what was acknowledged once stays acknowledged (MC-O8).
bool Multicast::Participant::hand_over(bool sends) {
  leaving_ = true;
  if (has_left_ || handed_over_) return true;
  Fabric& fabric = group_.fabric();
  const std::uint64_t now_ns = fabric.now_ns();
  if (hand_over_until_ns_ == 0) hand_over_until_ns_ = now_ns + options_.hand_over_ms * kNsPerMs;
  const bool cannot_send = !sends && !views_.empty() && !present().sends() && resending_.pending();
  handed_over_ = acknowledged() || cannot_send || now_ns >= hand_over_until_ns_;
  if (!handed_over_) fabric.wake_at(hand_over_until_ns_);
  return handed_over_;
}

/// Does what the others need of this member; hands up nothing.
std::size_t Multicast::Participant::poll_for_others() {
  std::size_t done = 0;
  if (log_) {
    done += log_->poll(present().counters().records_delivered > 0);
    if (!log_->begun()) return done + present().fabric().poll();
  }
  if (resending_.pending()) resending_.send_in(present());
  done += present().poll();
  while (!upcall_ && present().next()) ++done;
  return done;
}

/// Does not poll the group, whose handlers may use what is gone already; so it ends with the view.
bool Multicast::Participant::hand_over_at_end(std::uint32_t timeout_ms) noexcept {
  const bool works = !views_.empty() && !has_left_ && present().open() && !upcall_.running() &&
                     !delivers_no_more_ && process_ == getpid();
  if (!works) return acknowledged();
  Fabric& fabric = present().fabric();
  // Waiting is impossible on a simulated node, whose time stands, and in a handler of the fabric.
  if (fabric.cpu_costs() != nullptr || fabric.in_handler()) return acknowledged();
  delivers_no_more_ = true;
  if (log_) log_->skip_replay();
  try {
    const std::uint64_t until_ns = fabric.now_ns() + timeout_ms * kNsPerMs;
    const auto poll = [this] { return poll_for_others() > 0 || acknowledged(); };
    const auto collect = [&fabric] { return Waits{.fabrics = {&fabric}}; };
    for (std::uint64_t now_ns = fabric.now_ns(); now_ns < until_ns; now_ns = fabric.now_ns()) {
      if (acknowledged() || !present().open() || (log_ && !log_->failure().empty())) break;
      if (!poll()) static_cast<void>(sleep_unless(poll, collect, until_ns - now_ns));
    }
  } catch (...) {
    return false;  // the log has failed
  }
  return acknowledged();
}

// --- delivery ------------------------------------------------------------------------------------

void Multicast::Participant::hand_up(std::span<const Delivery> batch) {
  if (delivers_no_more_) return;
  OpenView& view = views_.present();
  if (view.nothing_delivered_before() && !state_.awaited()) [[likely]]
    return upcall_.call(batch);
  if (state_.awaited()) return;  // the view ends; the next view's state has all of this
  std::vector<Delivery> rest;
  for (const Delivery& delivery : batch)
    if (!view.delivered_before(delivery)) rest.push_back(delivery);
  if (!rest.empty()) upcall_.call(rest);
}

void Multicast::Participant::check_not_begun(const char* what) const {
  if (views_.empty()) return;
  throw Error(who_ + what + " comes too late: call it before the group's first poll()");
}

}  // namespace dunlin
