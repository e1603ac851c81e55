#include "bench/store/peers.hpp"

#include <algorithm>
#include <utility>

#include "bench/harness/neighbour.hpp"
#include "bench/store/lmdb.hpp"

namespace dunlin::bench {
namespace {

[[nodiscard]] bool reads(YcsbKind kind) {
  return kind == YcsbKind::read || kind == YcsbKind::read_modify_write;
}
[[nodiscard]] bool writes(YcsbKind kind) { return kind != YcsbKind::read; }

[[nodiscard]] std::vector<std::uint64_t> all_keys(std::uint32_t records) {
  std::vector<std::uint64_t> keys;
  for (std::uint32_t i = 0; i < records; ++i) keys.push_back(mixed(i));
  return keys;
}

/// Of calls that have ended. A read may miss a record that another one of them has inserted.
template <class MadeBy>
void demand_found(std::span<const YcsbCall> calls, const MadeBy& made_by) {
  if (std::ranges::find(calls, YcsbKind::insert, &YcsbCall::kind) != calls.end()) return;
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (reads(calls[i].kind) && !made_by(i).found())
      throw Error("bench: a record of the workload is not there");
}

/// A server, to which all requests of a batch are sent together.
class LoadedServer {
 public:
  LoadedServer(Neighbour::Kind kind, std::uint32_t records)
      : server_(kind), value_(kYcsbValueBytes, 'v') {
    for (const std::uint64_t key : all_keys(records)) {
      const Dialogue one = server_.set(std::to_string(key), value_);
      server_.exchange(one.request, one.answer);
    }
  }

  void make(std::span<const YcsbCall> calls) {
    first_ = second_ = {};
    for (const YcsbCall& call : calls) {
      const std::string name = std::to_string(mixed(call.record));
      if (reads(call.kind)) add(first_, server_.get(name, value_));
      if (writes(call.kind)) add(reads(call.kind) ? second_ : first_, server_.set(name, value_));
    }
    server_.exchange(first_.request, first_.answer);
    // What is to be written depends on what was read.
    if (!second_.request.empty()) server_.exchange(second_.request, second_.answer);
  }

 private:
  static void add(Dialogue& all, const Dialogue& one) {
    all.request += one.request;
    all.answer += one.answer;
  }

  Neighbour server_;
  std::string value_;
  Dialogue first_, second_;
};

/// The calls of a batch are one transaction, which only reads if all of them do.
class LoadedLmdb {
 public:
  explicit LoadedLmdb(std::uint32_t records)
      : lmdb_(kMapBytes), value_(kYcsbValueBytes), read_(kYcsbValueBytes) {
    lmdb_.begin(true);
    for (const std::uint64_t key : all_keys(records)) lmdb_.put(key, value_);
    lmdb_.end();
  }

  void make(std::span<const YcsbCall> calls) {
    lmdb_.begin(std::ranges::any_of(calls, writes, &YcsbCall::kind));
    for (const YcsbCall& call : calls) {
      const std::uint64_t key = mixed(call.record);
      if (reads(call.kind)) lmdb_.get(key, read_);
      if (writes(call.kind)) lmdb_.put(key, value_);
    }
    lmdb_.end();
  }

 private:
  static constexpr std::size_t kMapBytes = std::size_t{1} << 30;
  Lmdb lmdb_;
  std::vector<std::byte> value_, read_;
};

template <class Loaded>
MakeCalls calls_on(std::shared_ptr<Loaded> loaded) {
  return [loaded = std::move(loaded)](std::span<const YcsbCall> calls) { loaded->make(calls); };
}

StoreOptions options_for(std::uint32_t records) {
  const std::size_t pairs = std::size_t{records} + OurRecords::kMostInserts;
  return {.memory_bytes = store_bytes(pairs, kYcsbValueBytes),
          .large_bytes = 0,
          .expected_keys = pairs};
}

}  // namespace

OurRecords::OurRecords(Member& me, const Group& group, std::uint32_t records)
    : pair_(me, group, options_for(records)),
      batch_(pair_.store()),
      value_(kYcsbValueBytes),
      change_([this](const auto& present) {
        return present ? StoreUpdate::put(value_) : StoreUpdate::keep();
      }) {
  if (me.rank() == 0) pair_.load(all_keys(records), value_);
  me.meet([this] { pair_.poll(); });
}

void OurRecords::make_each(std::span<const YcsbCall> calls) {
  Store& store = pair_.store();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::uint64_t key = mixed(calls[i].record);
    StoreOperation& operation = pair_.operation(i);
    if (!reads(calls[i].kind)) {
      store.put(operation, key, value_);
    } else if (writes(calls[i].kind)) {
      store.update(operation, key, change_);
    } else {
      store.get(operation, key);
    }
  }
  pair_.demand(calls.size());
  demand_found(
      calls, [&](std::size_t i) -> auto& { return pair_.operation(i); });
}

void OurRecords::make_batch(std::span<const YcsbCall> calls) {
  batch_.clear();
  for (const YcsbCall& call : calls) {
    const std::uint64_t key = mixed(call.record);
    if (!reads(call.kind)) {
      batch_.put(key, value_);
    } else if (writes(call.kind)) {
      batch_.update(key, change_);
    } else {
      batch_.get(key);
    }
  }
  StorePair::demand(batch_.wait());
  demand_found(
      calls, [&](std::size_t i) -> auto& { return batch_[i]; });
}

std::vector<Peer> load_peers(std::uint32_t records) {
  std::vector<Peer> all;
  for (const Neighbour::Kind kind : {Neighbour::Kind::redis, Neighbour::Kind::memcached}) {
    Peer& peer = all.emplace_back(
        Peer{.name = std::string(Neighbour::name(kind)), .missing = Neighbour::missing(kind)});
    if (peer.missing.empty()) peer.make = calls_on(std::make_shared<LoadedServer>(kind, records));
  }
  Peer& lmdb = all.emplace_back(Peer{.name = "LMDB", .missing = Lmdb::missing()});
  if (lmdb.missing.empty()) lmdb.make = calls_on(std::make_shared<LoadedLmdb>(records));
  return all;
}

double calls_per_second(const MakeCalls& make, YcsbCalls& calls, const Batches& plan,
                        std::size_t at_once) {
  std::vector<YcsbCall> together(at_once);
  const double ns = batch_ns(plan, [&] {
    for (YcsbCall& call : together) call = calls.next();
    make(together);
  });
  return 1e9 * static_cast<double>(at_once) / ns;
}

}  // namespace dunlin::bench
