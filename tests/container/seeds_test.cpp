#include "support/seeds.hpp"

#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/histories.hpp"
#include "support/group_member.hpp"
#include "support/rounds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator: members call a map and a queue in both styles, while some
/// crash, hang, pause, or are cut off, and some calls are abandoned.
namespace dunlin {
namespace {

using container::MapCall;
using remote::Status;
using test::KeyHistory;
using test::QueueHistory;

const std::uint64_t kContainerSeeds = test::rounds(1'000);
constexpr std::uint32_t kKeys = 5;

struct Value {  // of two lines, with the key's
  std::array<std::uint64_t, 10> words;
};
std::uint64_t number_of(const Value& value) {
  for (const std::uint64_t word : value.words) EXPECT_EQ(word, value.words[0]) << "CON-S1: torn";
  return value.words[0];
}
std::uint64_t number_of(std::uint32_t value) { return value; }
void set_number(Value& value, std::uint64_t number) { value.words.fill(number); }
void set_number(std::uint32_t& value, std::uint64_t number) {
  value = static_cast<std::uint32_t>(number);
}

/// A map whose values stand for numbers, and the call on it.
struct AuditedMap {
  virtual ~AuditedMap() = default;
  virtual void begin(MapCall which, std::uint64_t key, std::uint64_t number, Style style) = 0;
  [[nodiscard]] virtual remote::CallBase& call() noexcept = 0;
  [[nodiscard]] virtual Status status() const noexcept = 0;
  [[nodiscard]] virtual bool found() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t number() const = 0;
  [[nodiscard]] virtual std::uint32_t tables() const noexcept = 0;
};
template <class V>
struct AuditedMapOf final : AuditedMap {
  using Map = HashMap<std::uint64_t, V>;
  AuditedMapOf(Containers& containers, const MapOptions& options) : map(containers, options) {}
  void begin(MapCall which, std::uint64_t key, std::uint64_t number, Style style) override {
    V value;
    set_number(value, number);
    its_call = test::begin_call(map, which, key, value, style);
  }
  remote::CallBase& call() noexcept override { return its_call; }
  Status status() const noexcept override { return its_call.status(); }
  bool found() const noexcept override { return its_call.result().found(); }
  std::uint64_t number() const override { return number_of(its_call.result().value()); }
  std::uint32_t tables() const noexcept override { return map.local_use().tables; }

  Map map;
  typename Map::Operation its_call;
};
using AuditedQueue = Queue<Value>;

struct ContainerAuditor;

/// With these, some automatic calls go by message.
ComponentCosts some_costs(std::uint64_t seed) {
  return {.read_ns = 1'000,
          .write_ns = 1'000,
          .compare_swap_ns = 1'000,
          .fetch_add_ns = 1'000,
          .message_ns = 500 + 500 * static_cast<double>(seed % 8)};
}

struct ContainersSeen {
  std::uint64_t map = 0, pushes = 0, pops = 0, empty = 0, full = 0, half = 0, timed_out = 0,
                lost = 0, stopped = 0, abandoned = 0, drained = 0, grown = 0;
};

/// A member's program: one call on the map and one on the queue at a time.
class AuditedMember : public test::GroupMember {
 public:
  AuditedMember(ContainerAuditor& its_auditor, Rank its_rank, std::uint64_t seed);
  std::size_t step();
  void stop() { stopping_ = true; }
  void drain() { draining_ = true; }
  void assign_each_key() { last_key_ = 0; }
  [[nodiscard]] bool has_assigned() const { return last_key_ == kKeys && !in_map_; }
  void close() {
    push_ = {};
    pop_ = {};
    map.reset();
    queue.reset();
    containers.reset();
  }
  [[nodiscard]] bool idle() const { return map->call().finished() && queue_call_finished(); }
  [[nodiscard]] bool is_popping() const { return in_queue_ && !pushes_; }
  [[nodiscard]] bool found_empty() const { return drained_; }

  ContainerAuditor& auditor;
  Rank rank;
  std::unique_ptr<Containers> containers;
  std::unique_ptr<AuditedMap> map;
  std::unique_ptr<AuditedQueue> queue;

 private:
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void begin_map();
  void call_map(MapCall call, std::uint32_t key);
  void end_map();
  void begin_queue();
  void end_queue();
  [[nodiscard]] bool count(Status status);
  [[nodiscard]] bool queue_call_finished() const { return push_.finished() && pop_.finished(); }

  test::Draws draws_;
  bool stopping_ = false, draining_ = false, drained_ = false;
  AuditedQueue::Push push_;  // of the two, one is under way at most
  AuditedQueue::Pop pop_;
  bool in_map_ = false, in_queue_ = false;
  MapCall call_ = MapCall::find;
  std::uint32_t key_ = 0;
  std::uint32_t last_key_ = kKeys;  // the next for assign_each_key()
  std::size_t event_ = 0;
  bool pushes_ = false;
  std::uint64_t element_ = 0, began_ = 0, next_at_ns_ = 0;
};

struct ContainerAuditor {
  ContainerAuditor(std::uint64_t seed, ContainersSeen& what, bool its_packed)
      : seen(what),
        packed(its_packed),
        draws(seed),
        count(2 + below(4)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count) {
    style = std::array{Style::one_sided, Style::message, Style::automatic}.at(below(3));
    if (style == Style::automatic && seed % 2 == 1) costs = some_costs(seed / 2);
    host = below(count);
    capacity = 1 + below(6);
    checked = seed % 4 == 0;
    grows = seed % 3 == 0;
    patience = below(4) == 0 ? 20 : 300;
    if (below(2) == 0) first_trouble_ns = 6'000;  // amid the first inserts
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(std::make_unique<AuditedMember>(*this, rank, seed * 89 + rank));
      AuditedMember& member = *members.back();
      world.attach(rank, [&member] { return member.progress.poll() + member.step(); });
    }
  }

  void run() {
    for (std::uint32_t troubles = below(4); troubles > 0; --troubles) {
      world.run_for(1 + below(std::exchange(first_trouble_ns, 300'000)));
      test::trouble(world, draws, gone);
    }
    world.run_for(300'000);
    test::heal_all(world, count);
    for (const auto& member : members) member->stop();
    const bool all_ended = world.run_until([&] { return all_idle(); }, 1'000'000'000);
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || gone[rank] || members[rank]->idle())
          << "CON-P4, CON-P5: a call of member " << rank << " hangs, " << name_of(style);
    drain();
    assign_each_key();
    for (std::uint32_t key = 0; key < kKeys; ++key)
      EXPECT_TRUE(keys.at(key).linearizable()) << "CON-P1: " << name_of(style) << "\n"
                                               << keys.at(key).text();
    for (Rank rank = 0; rank < count; ++rank)
      seen.grown += gone[rank] ? 0 : members[rank]->map->tables() - 1;
    for (const auto& member : members) unknown_pops += member->is_popping() ? 1 : 0;
    EXPECT_EQ(elements.fault(unknown_pops, drained), "") << name_of(style);
    for (const auto& member : members) member->close();
  }

  /// A member that is left takes what is in the queue, if the queue is.
  void drain() {
    if (gone[host] || !members[host]->is_member()) return;
    AuditedMember& last = *members[host];
    world.on(host, [&last] {
      last.drain();
      last.step();
    });
    drained =
        world.run_until([&] { return last.found_empty() || !last.is_member(); }, 1'000'000'000) &&
        last.is_member();
    EXPECT_TRUE(drained || !last.is_member()) << "CON-Q3: the queue does not become empty";
    seen.drained += drained ? 1 : 0;
  }

  /// By a member that is left: no key may wait for a call that has been given up.
  void assign_each_key() {
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank] || !members[rank]->is_member()) continue;
      AuditedMember& last = *members[rank];
      world.on(rank, [&last] {
        last.assign_each_key();
        last.step();
      });
      const auto ended = [&] { return last.has_assigned() || !last.is_member(); };
      EXPECT_TRUE(world.run_until(ended, 1'000'000'000)) << "CON-P4, CON-P5: the last call hangs";
      return;
    }
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !members[rank]->idle()) return false;
    return true;
  }

  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }

  ContainersSeen& seen;
  bool packed;  // the map's slots
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;  // crashed or hung
  Style style = Style::automatic;
  ComponentCosts costs;
  Rank host = 0;
  std::uint32_t capacity = 1;
  std::uint32_t patience = 300;              // polls of a call on the map, until it is abandoned
  std::uint32_t first_trouble_ns = 300'000;  // it comes before that
  bool checked = false;  // calls that announce themselves must end, and be right, too
  bool grows = false;    // the map, from one slot a part
  bool drained = false;
  std::uint64_t events = 0, values = 0, unknown_pops = 0;
  std::array<KeyHistory, kKeys> keys;
  QueueHistory elements;
  std::vector<std::unique_ptr<AuditedMember>> members;
};

AuditedMember::AuditedMember(ContainerAuditor& its_auditor, Rank its_rank, std::uint64_t seed)
    : GroupMember(its_auditor.world.fabric(its_rank)),
      auditor(its_auditor),
      rank(its_rank),
      draws_(seed) {
  containers = std::make_unique<Containers>(progress, ContainersOptions{.costs = auditor.costs});
  const MapOptions options{.name = "map",
                           .slots = auditor.grows ? 1U : 12U,
                           .style = auditor.style,
                           .checked = auditor.checked,
                           .grow_to = auditor.grows ? 16U : 0U,
                           .packed = auditor.packed};
  if (auditor.packed)
    map = std::make_unique<AuditedMapOf<std::uint32_t>>(*containers, options);
  else
    map = std::make_unique<AuditedMapOf<Value>>(*containers, options);
  queue = std::make_unique<AuditedQueue>(*containers, QueueOptions{.name = "queue",
                                                                   .capacity = auditor.capacity,
                                                                   .host = auditor.host,
                                                                   .style = auditor.style,
                                                                   .checked = auditor.checked});
}

std::size_t AuditedMember::step() {
  std::size_t done = 0;
  if (!stopping_) {  // from then on, each call must end by itself
    if (in_map_ && !map->call().finished() && below(auditor.patience) == 0) map->call().abandon();
    if (in_queue_ && !queue_call_finished() && below(300) == 0)
      pushes_ ? push_.abandon() : pop_.abandon();
  }
  if (in_map_ && map->call().finished()) end_map(), ++done;
  if (in_queue_ && queue_call_finished()) end_queue(), ++done;
  if (draining_ && !in_queue_ && !drained_) begin_queue(), ++done;
  if (last_key_ < kKeys && !in_map_) call_map(MapCall::assign, last_key_++), ++done;
  if (stopping_) return done;
  const std::uint64_t now = progress.fabric().now_ns();
  if (now < next_at_ns_) {
    progress.fabric().wake_at(next_at_ns_);
    return done;
  }
  if (!in_map_) begin_map(), ++done;
  if (!in_queue_) begin_queue(), ++done;
  next_at_ns_ = now + (below(2) == 0 ? 0 : below(10'000));
  if (next_at_ns_ > now) progress.fabric().wake_at(next_at_ns_);
  return done;
}

void AuditedMember::begin_map() {
  const std::uint32_t key = below(kKeys);
  if (auditor.keys.at(key).full()) return;
  call_map(static_cast<MapCall>(below(4)), key);
}

void AuditedMember::call_map(MapCall call, std::uint32_t key) {
  call_ = call;
  key_ = key;
  KeyHistory& history = auditor.keys.at(key);
  ++auditor.values;
  event_ = history.add({.call = call_, .value = auditor.values, .begin = ++auditor.events});
  in_map_ = true;
  const auto style = static_cast<Style>(below(3));
  map->begin(call_, key_, auditor.values, style);
}

bool AuditedMember::count(Status status) {
  switch (status) {
    case Status::ok:
      return true;
    case Status::lost:
      ++auditor.seen.lost;
      return false;
    case Status::stopped:
      ++auditor.seen.stopped;
      return false;
    case Status::abandoned:
      ++auditor.seen.abandoned;
      return false;
    default:
      ADD_FAILURE() << remote::describe(status);
      return false;
  }
}

void AuditedMember::end_map() {
  in_map_ = false;
  test::KeyEvent& event = auditor.keys.at(key_)[event_];
  const Status status = map->status();
  if (status == Status::half_written) {
    ++auditor.seen.half;
    EXPECT_EQ(static_cast<int>(call_), static_cast<int>(MapCall::find));
    return;
  }
  if (!count(status)) return;
  ++auditor.seen.map;
  event.found = map->found();
  event.end = ++auditor.events;
  const bool has_value = event.found && (call_ == MapCall::find || call_ == MapCall::insert);
  if (has_value) event.value = map->number();
}

void AuditedMember::begin_queue() {
  pushes_ = !draining_ && below(2) == 0;
  began_ = ++auditor.events;
  in_queue_ = true;
  const auto style = static_cast<Style>(below(3));
  // Some calls wait a while; while draining, `empty` must be said.
  const std::uint64_t wait_ns = draining_ || began_ % 4 != 0 ? 0 : began_ * 997 % 100'000;
  if (!pushes_) {
    pop_ = queue->pop_wait(wait_ns, Promise::both, style);
    return;
  }
  element_ = auditor.elements.push(began_);
  Value value;
  value.words.fill(element_);
  push_ = queue->push_wait(value, wait_ns, Promise::both, style);
}

void AuditedMember::end_queue() {
  in_queue_ = false;
  const Status status = pushes_ ? push_.status() : pop_.status();
  if (status == Status::full) {
    EXPECT_TRUE(pushes_);
    ++auditor.seen.full;
    return auditor.elements.not_pushed(element_);
  }
  if (status == Status::empty) {
    EXPECT_FALSE(pushes_);
    ++auditor.seen.empty;
    if (draining_) drained_ = true;
    return auditor.elements.found_empty(began_, ++auditor.events);
  }
  if (status == Status::timed_out) {  // and has done nothing (CON-Q5)
    ++auditor.seen.timed_out;
    if (pushes_) auditor.elements.not_pushed(element_);
    return;
  }
  if (!count(status)) {
    if (!pushes_) ++auditor.unknown_pops;
    return;
  }
  ++(pushes_ ? auditor.seen.pushes : auditor.seen.pops);
  if (pushes_) return auditor.elements.pushed(element_, ++auditor.events);
  const Value value = pop_.result().value();
  for (const std::uint64_t word : value.words) ASSERT_EQ(word, value.words[0]) << "CON-S1: torn";
  EXPECT_EQ(auditor.elements.popped(value.words[0], began_, ++auditor.events), "");
}

void audit(bool packed) {
  const test::Seeds seeds(kContainerSeeds);
  ContainersSeen seen;
  test::for_each_seed(seeds,
                      [&](std::uint64_t seed) { ContainerAuditor(seed, seen, packed).run(); });
  if (packed) {
    EXPECT_EQ(seen.half, 0U) << "CON-K2";
  } else {
    EXPECT_TRUE(seen.half > 0 || !seeds.are_usual);
  }
  for (const std::uint64_t count :
       {seen.map, seen.pushes, seen.pops, seen.empty, seen.full, seen.lost, seen.stopped,
        seen.abandoned, seen.timed_out, seen.drained, seen.grown})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.map << " calls on maps, " << seen.pushes << " pushes, " << seen.pops
            << " pops, " << seen.empty << " empty, " << seen.full << " full, " << seen.half
            << " half written, " << seen.lost << " lost, " << seen.stopped << " stopped, "
            << seen.abandoned << " abandoned, " << seen.timed_out << " timed out, " << seen.drained
            << " queues drained, " << seen.grown << " tables added\n";
}

/// Each call draws its style, so one auditor checks all of them, as CON-P6 promises.
TEST(ContainersInSimulator, KeepTheirPromisesWhateverHappens) { audit(false); }

/// A key that comes behind its word (CON-K1) would be inserted twice.
TEST(PackedMapsInSimulator, KeepTheirPromisesWhateverHappens) { audit(true); }

}  // namespace
}  // namespace dunlin
