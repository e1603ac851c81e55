#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "container/histories.hpp"
#include "container/texts.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator: members call functions at each other, and update a map beside
/// its other calls, while some crash, hang, pause, or are cut off, and some calls are given up.
namespace dunlin {
namespace {

using container::MapCall;
using remote::Status;

constexpr std::uint32_t kKeys = 3;
constexpr std::uint32_t kBytes = 2'000;  // of a long call

/// What an update, or a plain call, has left: its number, and that of what it replaced.
struct Left {
  std::uint64_t number = 0, former = 0;
  std::array<std::uint64_t, 6> more{};  // a slot of two lines
};
Left left_by(std::uint64_t number, std::uint64_t former) {
  Left left{number, former, {}};
  left.more.fill(number);
  return left;
}

struct FunctionsSeen {
  std::uint64_t ok = 0, in_buffers = 0, threw = 0, updates = 0, lost = 0, stopped = 0, given_up = 0,
                last = 0;
};

struct FunctionAuditor;

/// A member's program: some calls of a function and one on the map at a time.
class CallingMember : public test::ContainerMember {
 public:
  static constexpr std::size_t kCalls = 4;
  static constexpr std::uint64_t kThrows = 7;  // of so many calls, one throws

  CallingMember(FunctionAuditor& auditor, Rank rank, std::uint64_t seed);
  std::size_t step();
  void stop() { stopping_ = true; }
  void will_call_once_more() { calls_are_due_ = true; }
  [[nodiscard]] bool idle() const {
    const auto has_ended = [](const Note& note) { return note.number == 0; };
    return std::ranges::all_of(notes_, has_ended) && !in_map_ && !calls_are_due_;
  }
  void close() {
    for (Note& note : notes_) note.call = {};
    update_ = {};
    other_ = {};
    sum_.reset();
    map_.reset();
    note_.reset();
  }

 private:
  using Texts = Function<std::string(std::uint64_t, std::string)>;
  using Map = HashMap<std::uint64_t, Left>;
  struct Note {                // a call of the function
    std::uint64_t number = 0;  // 0: there is none
    Rank at = 0;
    remote::Call<Returned<std::string>> call;
  };
  static Fabric& fabric_of(FunctionAuditor& auditor, Rank rank);
  [[nodiscard]] static std::string text_of(std::uint64_t number) {
    return test::text_of(number, number % 3 == 0 ? kBytes - 12 - number % 50 : number % 80);
  }
  std::string answer(std::uint64_t number, const std::string& text);
  void call_once_more();
  void begin(Note& note, Rank at);
  void end(Note& note);
  void begin_map();
  void end_map();
  [[nodiscard]] bool count(Status status);
  [[nodiscard]] remote::CallBase& map_call() {
    return updates_ ? static_cast<remote::CallBase&>(update_) : other_;
  }

  FunctionAuditor& auditor_;
  Rank rank_;
  test::Draws draws_;
  std::optional<Texts> note_;
  std::optional<Map> map_;
  std::optional<Update<std::uint64_t, Left, std::uint64_t>> sum_;
  std::array<Note, kCalls> notes_;
  remote::Call<Updated<Left>> update_;
  Map::Operation other_;
  bool in_map_ = false, updates_ = false, stopping_ = false, calls_are_due_ = false;
  std::uint64_t key_ = 0, number_ = 0;
  std::size_t event_ = 0;
  std::uint64_t next_at_ns_ = 0;
};

struct FunctionAuditor {
  FunctionAuditor(std::uint64_t seed, FunctionsSeen& what)
      : seen(what),
        draws(seed),
        count(2 + draws.below(3)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count),
        buffers(1 + draws.below(3)),
        patience(draws.below(3) == 0 ? 30 : 2'000) {
    const bool coherent = world.fabric(0).properties().atomics_coherent_with_cpu;
    style = coherent && draws.below(2) == 0 ? Style::automatic : Style::message;
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(std::make_unique<CallingMember>(*this, rank, seed * 89 + rank));
      CallingMember& member = *members.back();
      world.attach(rank, [&member] { return member.progress.poll() + member.step(); });
    }
  }

  void run() {
    for (std::uint32_t troubles = draws.below(4); troubles > 0; --troubles) {
      world.run_for(1 + draws.below(200'000));
      test::trouble(world, draws, gone);
    }
    world.run_for(200'000);
    test::heal_all(world, count);
    for (const auto& member : members) member->stop();
    EXPECT_TRUE(world.run_until([&] { return all_idle(); }, 1'000'000'000))
        << "CON-P4: a call hangs";
    // No buffer may still be taken for a call that was given up.
    for (Rank rank = 0; rank < count; ++rank)
      if (is_left(rank)) {
        members[rank]->will_call_once_more();
        world.on(rank, [this, rank] { members[rank]->step(); });
      }
    EXPECT_TRUE(world.run_until([&] { return all_idle(); }, 1'000'000'000))
        << "CON-F4: the last call hangs";
    for (std::uint32_t key = 0; key < kKeys; ++key)
      EXPECT_TRUE(keys.at(key).linearizable()) << "CON-F5: " << name_of(style) << "\n"
                                               << keys.at(key).text();
    for (Rank rank = 0; rank < count; ++rank) world.detach_all(rank);
    for (const auto& member : members) member->close();
  }
  [[nodiscard]] bool is_left(Rank rank) const { return !gone[rank] && members[rank]->is_member(); }
  [[nodiscard]] bool all_idle() const {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !members[rank]->idle()) return false;
    return true;
  }

  FunctionsSeen& seen;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;  // crashed or hung
  std::uint32_t buffers;
  std::uint32_t patience;  // polls of a call, until it is given up
  Style style = Style::automatic;
  std::uint64_t events = 0, numbers = 0;
  std::map<std::uint64_t, int> runs;  // of each call's function
  std::set<std::uint64_t> replaced;   // numbers that an update has replaced
  std::array<test::KeyHistory, kKeys> keys;
  std::vector<std::unique_ptr<CallingMember>> members;
};

Fabric& CallingMember::fabric_of(FunctionAuditor& auditor, Rank rank) {
  return auditor.world.fabric(rank);
}

CallingMember::CallingMember(FunctionAuditor& auditor, Rank rank, std::uint64_t seed)
    : ContainerMember(fabric_of(auditor, rank)), auditor_(auditor), rank_(rank), draws_(seed) {
  note_.emplace(
      containers, FunctionOptions{.name = "note", .bytes = kBytes, .buffers = auditor.buffers},
      [this](std::uint64_t number, const std::string& text) { return answer(number, text); });
  map_.emplace(containers,
               MapOptions{.name = "map", .slots = 2, .style = auditor.style, .grow_to = 16});
  sum_.emplace(*map_, FunctionOptions{.name = "sum"},
               [](const std::optional<Left>& former, std::uint64_t number) {
                 return left_by(number, former ? former->number : 0);
               });
}

std::string CallingMember::answer(std::uint64_t number, const std::string& text) {
  EXPECT_EQ(++auditor_.runs[number], 1) << "CON-F1: call " << number << " has run twice";
  EXPECT_EQ(text, text_of(number)) << "CON-F2: arguments of another call";
  if (number % kThrows == 0) throw std::runtime_error("no " + std::to_string(number));
  return std::string(text.rbegin(), text.rend());
}

std::size_t CallingMember::step() {
  std::size_t done = 0;
  for (Note& note : notes_) {
    if (note.number != 0 && !stopping_ && draws_.below(auditor_.patience) == 0) note.call.abandon();
    if (note.number != 0 && note.call.finished()) end(note), ++done;
  }
  if (in_map_ && !stopping_ && draws_.below(auditor_.patience) == 0) map_call().abandon();
  if (in_map_ && map_call().finished()) end_map(), ++done;
  if (calls_are_due_) call_once_more(), ++done;
  if (stopping_) return done;
  const std::uint64_t now = progress.fabric().now_ns();
  if (now < next_at_ns_) {
    progress.fabric().wake_at(next_at_ns_);
    return done;
  }
  for (Note& note : notes_)
    if (note.number == 0 && draws_.below(2) == 0) begin(note, draws_.below(auditor_.count)), ++done;
  if (!in_map_) begin_map(), ++done;
  next_at_ns_ = now + (draws_.below(2) == 0 ? 0 : draws_.below(5'000));
  if (next_at_ns_ > now) progress.fabric().wake_at(next_at_ns_);
  return done;
}

/// More long calls than there are buffers.
void CallingMember::call_once_more() {
  calls_are_due_ = false;
  for (std::size_t i = 0; i < kCalls; ++i) {
    auditor_.numbers += 3 - auditor_.numbers % 3;
    --auditor_.numbers;  // begin() counts on to a long one
    begin(notes_.at(i), (rank_ + 1) % auditor_.count);
  }
  ++auditor_.seen.last;
}

void CallingMember::begin(Note& note, Rank at) {
  note.number = ++auditor_.numbers;
  note.at = at;
  note.call = containers.at(at, *note_, note.number, text_of(note.number));
}

bool CallingMember::count(Status status) {
  FunctionsSeen& seen = auditor_.seen;
  if (status == Status::lost) ++seen.lost;
  if (status == Status::stopped) ++seen.stopped;
  if (status == Status::abandoned) ++seen.given_up;
  const bool is_known = status == Status::ok || status == Status::threw || status == Status::lost ||
                        status == Status::stopped || status == Status::abandoned;
  EXPECT_TRUE(is_known) << remote::describe(status);
  return status == Status::ok || status == Status::threw;
}

void CallingMember::end(Note& note) {
  const std::uint64_t number = std::exchange(note.number, 0);
  if (!count(note.call.status())) return;
  EXPECT_EQ(auditor_.runs[number], 1) << "CON-F1: call " << number << " has ended, and not run";
  const bool throws = number % kThrows == 0;
  EXPECT_EQ(note.call.status(), throws ? Status::threw : Status::ok);
  ++(throws ? auditor_.seen.threw : auditor_.seen.ok);
  if (throws) {
    const std::string sentence = ": no " + std::to_string(number);
    EXPECT_TRUE(note.call.describe().ends_with(sentence)) << note.call.describe();
    return;
  }
  const std::string text = text_of(number);
  if (text.size() > kMessageContentBytes) ++auditor_.seen.in_buffers;
  EXPECT_EQ(note.call.result().value(), std::string(text.rbegin(), text.rend()))
      << "CON-F2: the result of another call";
}

void CallingMember::begin_map() {
  key_ = draws_.below(kKeys);
  test::KeyHistory& history = auditor_.keys.at(key_);
  if (history.full()) return;
  updates_ = draws_.below(2) == 0;
  const auto call = updates_ ? MapCall::assign : static_cast<MapCall>(draws_.below(4));
  number_ = ++auditor_.numbers;
  event_ = history.add({.call = call, .value = number_, .begin = ++auditor_.events});
  in_map_ = true;
  if (updates_)
    update_ = map_->update(key_, *sum_, number_);
  else
    other_ = test::begin_call(*map_, call, key_, left_by(number_, 0),
                              static_cast<Style>(draws_.below(3)));
}

void CallingMember::end_map() {
  in_map_ = false;
  test::KeyEvent& event = auditor_.keys.at(key_)[event_];
  const Status status = updates_ ? update_.status() : other_.status();
  if (status == Status::half_written && updates_) {  // it has changed nothing
    event.end = test::kNoEnd;
    return;
  }
  if (status == Status::half_written || !count(status)) return;
  event.found = updates_ ? update_.result().found() : other_.result().found();
  event.end = ++auditor_.events;
  if (!updates_) {
    if (event.found && (event.call == MapCall::find || event.call == MapCall::insert))
      event.value = other_.result().value().number;
    return;
  }
  ++auditor_.seen.updates;
  const Left left = update_.result().value();
  EXPECT_EQ(left.number, number_) << "CON-F5: the value of another update";
  EXPECT_EQ(left.former != 0, event.found) << "CON-F5";
  EXPECT_TRUE(left.former == 0 || auditor_.replaced.insert(left.former).second)
      << "CON-F5: two updates have replaced value " << left.former;
}

TEST(FunctionsInSimulator, KeepTheirPromisesWhateverHappens) {
  const test::Seeds seeds(test::rounds(1'000));
  FunctionsSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { FunctionAuditor(seed, seen).run(); });
  for (const std::uint64_t count : {seen.ok, seen.in_buffers, seen.threw, seen.updates, seen.lost,
                                    seen.stopped, seen.given_up, seen.last})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.ok << " calls ok, " << seen.in_buffers << " of them in buffers, " << seen.threw
            << " threw, " << seen.updates << " updates, " << seen.lost << " lost, " << seen.stopped
            << " stopped, " << seen.given_up << " given up\n";
}

/// CON-F4: whenever a long call is given up, the buffers serve later ones.
TEST(FunctionsInSimulator, GiveBackTheirBuffersWheneverACallIsGivenUp) {
  constexpr std::uint64_t kMomentNs = 97;
  for (std::uint32_t moment = 0; moment < test::rounds(200); ++moment) {
    test::SimContainers cluster(sim::profile("ib100"), 2);
    std::vector<std::unique_ptr<Function<std::string(std::string)>>> echo;
    for (Rank rank = 0; rank < 2; ++rank)
      echo.push_back(std::make_unique<Function<std::string(std::string)>>(
          cluster[rank], FunctionOptions{.name = "echo", .bytes = kBytes, .buffers = 1},
          [](const std::string& text) { return text; }));
    cluster.world.run_for(30'000);
    auto first = cluster[0].at(1, *echo[0], test::text_of(1, 1'500));
    auto second = cluster[0].at(1, *echo[0], test::text_of(2, 1'600));
    cluster.world.run_for(moment * kMomentNs);
    first.abandon();
    EXPECT_EQ(cluster.end_of(second), Status::ok) << moment;
    EXPECT_EQ(second.result().value(), test::text_of(2, 1'600)) << "CON-F2, moment " << moment;
    auto third = cluster[0].at(1, *echo[0], test::text_of(3, 1'700));
    EXPECT_EQ(cluster.end_of(third), Status::ok) << moment;
    EXPECT_EQ(third.result().value(), test::text_of(3, 1'700)) << "CON-F2, moment " << moment;
  }
}

}  // namespace
}  // namespace dunlin
