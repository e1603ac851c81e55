#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <dunlin/dunlin.hpp>

#include "multicast/subgroup_view.hpp"

/// Performs one operation of the data path so many times, for count.sh, which counts instructions.
/// Both members are in this thread: nothing waits, so the count depends on the code alone.
namespace {

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<double> load;
};

struct Pair {
  std::unique_ptr<dunlin::Fabric> first;
  std::unique_ptr<dunlin::Fabric> second;
};

Pair join_both() {
  const std::string group = "instructions-" + std::to_string(getpid());
  auto one = dunlin::begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
  auto other = dunlin::begin_join({.group = group, .members = 2, .silence_timeout_ms = 0});
  Pair pair;
  while (!pair.first || !pair.second) {
    if (!pair.first) pair.first = one->poll();
    if (!pair.second) pair.second = other->poll();
  }
  return pair;
}

/// One subgroup in one view, in which both send and deliver.
class Views {
 public:
  Views(const Pair& pair, dunlin::multicast::Mode mode)
      : first_(*pair.first, options_of(pair, mode), counting()),
        second_(*pair.second, options_of(pair, mode), counting()) {
    while (!first_.connected() || !second_.connected()) poll_both();
  }
  std::size_t poll() { return first_.poll(); }
  /// The first member sends so many messages; then as many polls as both need to deliver them.
  std::uint64_t send(std::size_t messages, std::size_t bytes) {
    const std::uint64_t before = delivered_;
    for (std::size_t i = 0; i < messages; ++i)
      if (first_.send(std::span(message_).first(bytes)) != dunlin::multicast::SendResult::sent)
        return 0;
    for (int round = 0; round < 3; ++round) poll_both();
    return delivered_ - before;
  }

 private:
  static dunlin::multicast::SubgroupViewOptions options_of(const Pair& pair,
                                                           dunlin::multicast::Mode mode) {
    return {.name = "view",
            .generation = 1,
            .members = {pair.first->rank(), pair.second->rank()},
            .senders = {0, 1},
            .mode = mode};
  }
  dunlin::multicast::Upcall counting() {
    return
        [this](std::span<const dunlin::multicast::Delivery> batch) { delivered_ += batch.size(); };
  }
  void poll_both() {
    first_.poll();
    second_.poll();
  }

  std::vector<std::byte> message_ = std::vector<std::byte>(1'000);
  std::uint64_t delivered_ = 0;
  dunlin::multicast::SubgroupView first_;
  dunlin::multicast::SubgroupView second_;
};

/// The same, as a program has it: a group, and a multicast in it.
class Multicasts {
 public:
  explicit Multicasts(const Pair& pair)
      : first_group_(*pair.first, {.subgroups = {{.name = "all"}}}),
        second_group_(*pair.second, {.subgroups = {{.name = "all"}}}),
        first_(first_group_, "all"),
        second_(second_group_, "all") {
    for (dunlin::Multicast* multicast : {&first_, &second_})
      multicast->on_delivery([this](std::span<const dunlin::multicast::Delivery> batch) {
        delivered_ += batch.size();
      });
    while (send() != 2) {
    }
  }
  std::size_t poll() { return first_group_.poll(); }
  std::uint64_t send() {
    const std::uint64_t before = delivered_;
    const std::byte message[8] = {};
    static_cast<void>(first_.send(message));
    for (int round = 0; round < 3; ++round) {
      first_group_.poll();
      second_group_.poll();
    }
    return delivered_ - before;
  }

 private:
  std::uint64_t delivered_ = 0;
  dunlin::Group first_group_;
  dunlin::Group second_group_;
  dunlin::Multicast first_;
  dunlin::Multicast second_;
};

/// Segments, a map and a queue in the memory of the second member, which the first one uses.
class OneSided {
 public:
  explicit OneSided(const Pair& pair) : first_(*pair.first), second_(*pair.second) {
    null_ = allocate(dunlin::Coherence::null);
    write_ = allocate(dunlin::Coherence::write);
    strict_ = allocate(dunlin::Coherence::strict);
    while (first_.map.home_of(key_) != pair.second->rank()) ++key_;
    while (!done(first_.map.assign(key_, 1)) || !done(first_.queue.push(1)) ||
           !done(first_.queue.pop()) || !done(first_.counter.add(1)) || !add_by_message() ||
           !update() || !call()) {
    }
  }
  bool get() { return first_.segments.get(null_, dunlin::bytes_of(word_)).ok(); }
  bool put() { return first_.segments.put(null_, dunlin::bytes_of(word_)).ok(); }
  bool get_write() { return first_.segments.get(write_, dunlin::bytes_of(word_)).ok(); }
  bool put_write() { return first_.segments.put(write_, dunlin::bytes_of(word_)).ok(); }
  bool get_strict() { return first_.segments.get(strict_, dunlin::bytes_of(word_)).ok(); }
  bool lock() { return first_.segments.lock(strict_).ok() && first_.segments.unlock(strict_).ok(); }
  bool find() { return first_.map.find(key_).ok(); }
  bool assign() { return first_.map.assign(key_, 2).ok(); }
  bool insert() { return first_.map.insert(key_, 3).ok() && first_.map.erase(key_).ok(); }
  bool push() { return first_.queue.push(4).ok() && first_.queue.pop().ok(); }
  bool add() { return first_.counter.add(1).ok(); }
  // These count the polls of both members, too.
  bool add_by_message() {
    return done(first_.map.add(key_, 1, dunlin::Promise::both, dunlin::Style::message));
  }
  bool update() { return done(first_.map.update(key_, first_.sum, 1)); }
  bool call() { return done(first_.containers.at(1, first_.twice, 1)); }

 private:
  struct Member {
    explicit Member(dunlin::Fabric& fabric) : progress(fabric) {}
    dunlin::remote::Progress progress;
    dunlin::SegmentSpace segments{progress, {.pool_bytes = 1 << 16}};
    dunlin::Containers containers{progress};
    dunlin::HashMap<std::uint64_t, std::uint64_t> map{containers, {.name = "map", .slots = 1024}};
    dunlin::Queue<std::uint64_t> queue{containers, {.name = "queue", .capacity = 64, .host = 1}};
    dunlin::Counter counter{containers, {.name = "counter", .host = 1}};
    dunlin::Function<std::uint64_t(std::uint64_t)> twice{
        containers, {.name = "twice"}, [](std::uint64_t value) { return 2 * value; }};
    dunlin::Update<std::uint64_t, std::uint64_t, std::uint64_t> sum{
        map, {.name = "sum"}, [](const std::optional<std::uint64_t>& former, std::uint64_t more) {
          return former.value_or(0) + more;
        }};
  };
  template <class Call>
  bool done(Call call) {
    while (!call.finished()) {
      first_.progress.poll();
      second_.progress.poll();
    }
    return call.ok();
  }
  dunlin::Key allocate(dunlin::Coherence coherence) {
    auto made = second_.segments.allocate(
        {.bytes = 64, .coherence = coherence, .placement = dunlin::Placement::here()});
    while (!made.finished()) second_.progress.poll();
    const dunlin::Key key = made.result().key;
    while (!done(first_.segments.put(key, dunlin::bytes_of(word_)))) {
    }
    return key;
  }

  Member first_, second_;
  dunlin::Key null_, write_, strict_;
  std::uint64_t key_ = 1, word_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Pair pair = join_both();
  dunlin::Fabric& fabric = *pair.first;
  const dunlin::Rank peer = pair.second->rank();
  const dunlin::Region box = fabric.allocate({.name = "box", .bytes = 4096});
  const dunlin::Region theirs = pair.second->allocate({.name = "box", .bytes = 4096});
  fabric.announce(box);
  pair.second->announce(theirs);
  dunlin::Table<Row> table(fabric);
  dunlin::Table<Row> other(*pair.second);
  while (!fabric.connected(peer, box.id()) || !table.connected() || !other.connected()) {
    table.poll();
    other.poll();
  }

  const std::uint64_t word = 1;
  const dunlin::Operation batch[] = {dunlin::write(peer, box.id(), 0, &word, 8),
                                     dunlin::put(peer, box.id(), 64, &word, 8),
                                     dunlin::write(peer, box.id(), 128, &word, 8),
                                     dunlin::fetch_add(peer, box.id(), 192, 1, nullptr)};
  std::uint64_t well = 0;
  // Made if they are asked for: their memory is polled, too.
  const std::string asked_for = argc == 3 ? argv[1] : "";
  std::unique_ptr<Views> views;
  std::unique_ptr<Multicasts> multicasts;
  if (asked_for.starts_with("view-"))
    views = std::make_unique<Views>(pair, asked_for == "view-unordered"
                                              ? dunlin::multicast::Mode::unordered
                                              : dunlin::multicast::Mode::ordered);
  if (asked_for.starts_with("multicast-")) multicasts = std::make_unique<Multicasts>(pair);
  const bool is_one_sided = asked_for.find(':') != std::string::npos;
  const auto one_sided = is_one_sided ? std::make_unique<OneSided>(pair) : nullptr;
  const std::map<std::string, std::function<void()>> operations{
      {"nothing", [] {}},
      {"post", [&] { well += fabric.post(batch[0]).accepted; }},
      {"post-4", [&] { well += fabric.post(batch).accepted; }},
      {"poll", [&] { well += fabric.poll(); }},
      {"table-poll", [&] { well += table.poll(); }},
      {"push", [&] { well += table.push(&Row::step).sent; }},
      {"view-poll", [&] { well += views->poll(); }},
      {"view-8", [&] { well += views->send(1, 8); }},
      {"view-1000", [&] { well += views->send(1, 1'000); }},
      {"view-16x100", [&] { well += views->send(16, 100); }},
      {"view-unordered", [&] { well += views->send(1, 8); }},
      {"multicast-poll", [&] { well += multicasts->poll(); }},
      {"multicast-8", [&] { well += multicasts->send(); }},
      {"segment:get", [&] { well += one_sided->get(); }},
      {"segment:put", [&] { well += one_sided->put(); }},
      {"segment:get-write", [&] { well += one_sided->get_write(); }},
      {"segment:put-write", [&] { well += one_sided->put_write(); }},
      {"segment:get-strict", [&] { well += one_sided->get_strict(); }},
      {"segment:lock-unlock", [&] { well += one_sided->lock(); }},
      {"map:find", [&] { well += one_sided->find(); }},
      {"map:assign", [&] { well += one_sided->assign(); }},
      {"map:insert-erase", [&] { well += one_sided->insert(); }},
      {"queue:push-pop", [&] { well += one_sided->push(); }},
      {"counter:add", [&] { well += one_sided->add(); }},
      {"map:add-message", [&] { well += one_sided->add_by_message(); }},
      {"map:update", [&] { well += one_sided->update(); }},
      {"function:call", [&] { well += one_sided->call(); }}};
  const auto operation = operations.find(asked_for);
  if (operation == operations.end()) {
    std::cerr << "usage: count_instructions OPERATION TIMES, where OPERATION is one of";
    for (const auto& [name, action] : operations) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  for (std::int64_t times = std::atoll(argv[2]); times > 0; --times) operation->second();
  std::cout << well << '\n';
}
