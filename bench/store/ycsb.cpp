#include "bench/store/ycsb.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/neighbour.hpp"
#include "bench/store/experiments.hpp"
#include "bench/store/lmdb.hpp"
#include "bench/store/store_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kRecords = 20'000;
constexpr std::array<std::size_t, 2> kAtOnce{1, StorePair::kAtOnce};
constexpr std::array kNeighbours{Neighbour::Kind::redis, Neighbour::Kind::memcached};
constexpr std::uint64_t kSeed = 7;
/// Room for what workload D inserts in all rounds.
constexpr std::uint32_t kMostInserts = 20'000;

[[nodiscard]] std::uint32_t series_of(std::size_t workload, std::size_t in_flight) {
  return static_cast<std::uint32_t>(workload * kAtOnce.size() + in_flight);
}

[[nodiscard]] Batches plan_of(const Effort& effort, std::size_t at_once) {
  return effort.plan(50, at_once == 1 ? 100 : 20);
}

/// Calls a second of one client on a store whose keys lie at both members.
double measure_ours(StorePair& pair, YcsbCalls& calls, const Batches& plan, std::size_t at_once) {
  const std::vector<std::byte> value(kYcsbValueBytes);
  const auto change = [&](std::optional<std::span<const std::byte>> present) {
    if (!present) throw Error("bench: a record of the workload is not there");
    return StoreUpdate::put(value);
  };
  const auto begin = [&](StoreOperation& operation) {
    const YcsbCall call = calls.next();
    const std::uint64_t key = mixed(call.record);
    switch (call.kind) {
      case YcsbKind::read:
        return pair.store().get(operation, key);
      case YcsbKind::update:
      case YcsbKind::insert:
        return pair.store().put(operation, key, value);
      case YcsbKind::read_modify_write:
        return pair.store().update(operation, key, change);
    }
  };
  const double ns = batch_ns(plan, [&] {
    for (std::size_t i = 0; i < at_once; ++i) begin(pair.operation(i));
    pair.demand(at_once);
  });
  return 1e9 * static_cast<double>(at_once) / ns;
}

/// A round of ours in two processes; adds one to each series of the team.
void our_round(Team& team, const Effort& effort, std::uint32_t records) {
  const Group group(real_network("shm"), effort);
  team.run([&](Member& me) {
    const std::size_t pairs = records + kMostInserts;
    StorePair pair(me, group,
                   {.memory_bytes = store_bytes(pairs, kYcsbValueBytes),
                    .large_bytes = 0,
                    .expected_keys = pairs});
    std::vector<std::uint64_t> keys;
    for (std::uint32_t i = 0; i < records; ++i) keys.push_back(mixed(i));
    const std::vector<std::byte> value(kYcsbValueBytes);
    if (me.rank() == 0) pair.load(keys, value);
    me.meet([&] { pair.poll(); });
    std::vector<std::unique_ptr<YcsbCalls>> calls;
    std::vector<Contender> contenders;
    for (const YcsbWorkload& workload : kYcsbWorkloads) {
      YcsbCalls& of_this =
          *calls.emplace_back(std::make_unique<YcsbCalls>(workload, records, kSeed));
      for (const std::size_t at_once : kAtOnce)
        contenders.emplace_back([&, at_once] {
          return pair.turn(
              [&] { return measure_ours(pair, of_this, plan_of(effort, at_once), at_once); });
        });
    }
    alternate(me, 1, contenders);
  });
}

/// A store of other people with all records, and what it has been asked to hold since.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  /// Calls a second of one client; so many of them together.
  virtual double measure(std::size_t workload, const Batches& plan, std::size_t at_once) = 0;
};

class LoadedNeighbour final : public Peer {
 public:
  LoadedNeighbour(Neighbour::Kind kind, std::uint32_t records)
      : server_(kind), value_(kYcsbValueBytes, 'v') {
    for (std::uint32_t i = 0; i < records; ++i) {
      const Dialogue one = server_.set(name_of(i), value_);
      server_.exchange(one.request, one.answer);
    }
    for (const YcsbWorkload& workload : kYcsbWorkloads)
      calls_.emplace_back(workload, records, kSeed);
  }

  /// So many requests leave together.
  double measure(std::size_t workload, const Batches& plan, std::size_t at_once) override {
    YcsbCalls& calls = calls_.at(workload);
    const double ns = batch_ns(plan, [&] {
      requests_.clear();
      answers_.clear();
      second_ = {};
      for (std::size_t i = 0; i < at_once; ++i) begin(calls.next());
      server_.exchange(requests_, answers_);
      // What is to be written depends on what was read.
      if (!second_.request.empty()) server_.exchange(second_.request, second_.answer);
    });
    return 1e9 * static_cast<double>(at_once) / ns;
  }

 private:
  static std::string name_of(std::uint64_t record) { return std::to_string(mixed(record)); }
  static void add(std::string& requests, std::string& answers, const Dialogue& one) {
    requests += one.request;
    answers += one.answer;
  }
  void begin(const YcsbCall& call) {
    const std::string name = name_of(call.record);
    const bool reads = call.kind == YcsbKind::read || call.kind == YcsbKind::read_modify_write;
    add(requests_, answers_, reads ? server_.get(name, value_) : server_.set(name, value_));
    if (call.kind == YcsbKind::read_modify_write)
      add(second_.request, second_.answer, server_.set(name, value_));
  }

  Neighbour server_;
  std::string value_;
  std::vector<YcsbCalls> calls_;
  std::string requests_, answers_;
  Dialogue second_;
};

class LoadedLmdb final : public Peer {
 public:
  explicit LoadedLmdb(std::uint32_t records)
      : lmdb_(kLmdbBytes), value_(kYcsbValueBytes), read_(kYcsbValueBytes) {
    lmdb_.begin(true);
    for (std::uint32_t i = 0; i < records; ++i) lmdb_.put(mixed(i), value_);
    lmdb_.end();
    for (const YcsbWorkload& workload : kYcsbWorkloads)
      calls_.emplace_back(workload, records, kSeed);
  }

  /// So many calls are one transaction, which only reads if all of them do.
  double measure(std::size_t workload, const Batches& plan, std::size_t at_once) override {
    std::vector<YcsbCall> calls(at_once);
    const double ns = batch_ns(plan, [&] {
      bool writes = false;
      for (YcsbCall& call : calls) {
        call = calls_.at(workload).next();
        writes |= call.kind != YcsbKind::read;
      }
      lmdb_.begin(writes);
      for (const YcsbCall& call : calls) make(call);
      lmdb_.end();
    });
    return 1e9 * static_cast<double>(at_once) / ns;
  }

 private:
  static constexpr std::size_t kLmdbBytes = std::size_t{1} << 30;
  void make(const YcsbCall& call) {
    const std::uint64_t key = mixed(call.record);
    if (call.kind == YcsbKind::read || call.kind == YcsbKind::read_modify_write)
      lmdb_.get(key, read_);
    if (call.kind != YcsbKind::read) lmdb_.put(key, value_);
  }

  Lmdb lmdb_;
  std::vector<std::byte> value_, read_;
  std::vector<YcsbCalls> calls_;
};

struct Theirs {
  std::string name;
  std::string missing;
  std::unique_ptr<Peer> peer = {};  // null: it is not installed
  std::array<std::vector<double>, kYcsbWorkloads.size() * kAtOnce.size()> series = {};
};

std::vector<Result> measure_ycsb(const Effort& effort) {
  const std::uint32_t records = effort.scaled(kRecords);
  std::vector<Theirs> all;
  for (const Neighbour::Kind kind : kNeighbours) {
    Theirs& theirs = all.emplace_back(
        Theirs{.name = std::string(Neighbour::name(kind)), .missing = Neighbour::missing(kind)});
    if (theirs.missing.empty()) theirs.peer = std::make_unique<LoadedNeighbour>(kind, records);
  }
  Theirs& lmdb = all.emplace_back(Theirs{.name = "LMDB", .missing = Lmdb::missing()});
  if (lmdb.missing.empty()) lmdb.peer = std::make_unique<LoadedLmdb>(records);
  Team team({.processes = 2, .timeout = effort.timeout});
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    our_round(team, effort, records);
    for (Theirs& theirs : all)
      for (std::size_t workload = 0; theirs.peer && workload < kYcsbWorkloads.size(); ++workload)
        for (std::size_t i = 0; i < kAtOnce.size(); ++i)
          theirs.series.at(series_of(workload, i))
              .push_back(theirs.peer->measure(workload, plan_of(effort, kAtOnce[i]), kAtOnce[i]));
  }
  std::vector<Result> results;
  for (std::size_t workload = 0; workload < kYcsbWorkloads.size(); ++workload)
    for (std::size_t i = 0; i < kAtOnce.size(); ++i)
      for (const Theirs& theirs : all) {
        const std::uint32_t series = series_of(workload, i);
        Result result{.name = "ycsb",
                      .params = {{"workload", std::string(kYcsbWorkloads[workload].name)},
                                 {"at once", double(kAtOnce[i])}},
                      .unit = "1/s",
                      .better = Better::higher,
                      .limit_name = theirs.name,
                      .goal = Goal{.on = Goal::On::ratio, .bound = 1},
                      .note = theirs.missing};
        if (theirs.peer)
          compare(result, team.series(series), result.limit_name, theirs.series.at(series));
        else
          result.value = summarize(team.series(series));
        results.push_back(std::move(result));
      }
  return results;
}

}  // namespace

Experiment store_ycsb() {
  return {.name = "ycsb",
          .title =
              "YCSB's workloads, records of 1,000 bytes, Zipf 0.99: one client, beside Redis and "
              "memcached over UNIX sockets, and LMDB in memory without syncs",
          .fabric = "shm",
          .run = measure_ycsb};
}

}  // namespace dunlin::bench
