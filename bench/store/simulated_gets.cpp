#include "bench/store/simulated_gets.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include <dunlin/store.hpp>

#include "bench/fabric/simulated_members.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kMostUnderWay = 8;
constexpr std::uint64_t kSettleNs = 50'000;
constexpr std::uint64_t kWindowNs = 500'000;

/// A client thread that always has so many calls under way.
class Client {
 public:
  explicit Client(Fabric& fabric) : fabric_(fabric) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  std::size_t poll() {
    std::size_t done = poll_layer();
    for (std::uint32_t call = 0; call < kMostUnderWay; ++call) done += take_turn(call);
    return done;
  }
  /// On the client's processor.
  void keep_under_way(std::uint32_t many) {
    wanted_ = many;
    for (std::uint32_t call = 0; call < many; ++call) take_turn(call);
  }
  void count_anew() {
    ended_ = 0;
    total_ns_ = 0;
  }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }
  [[nodiscard]] double total_ns() const noexcept { return total_ns_; }
  /// Of all calls until now.
  [[nodiscard]] virtual std::uint64_t bucket_reads() const = 0;

 protected:
  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }

 private:
  virtual std::size_t poll_layer() = 0;
  virtual void begin(std::uint32_t call) = 0;
  /// Throws Error if it has ended badly.
  [[nodiscard]] virtual bool finished(std::uint32_t call) const = 0;

  std::size_t take_turn(std::uint32_t call) {
    std::optional<std::uint64_t>& since = since_.at(call);
    if (since && !finished(call)) return 0;
    if (since) {
      ++ended_;
      total_ns_ += static_cast<double>(fabric_.now_ns() - *since);
      since.reset();
    } else if (call >= wanted_) {
      return 0;
    }
    if (call < wanted_) {
      since = fabric_.now_ns();
      begin(call);
    }
    return 1;
  }

  Fabric& fabric_;
  std::uint32_t wanted_ = 0;
  std::array<std::optional<std::uint64_t>, kMostUnderWay> since_;  // when it began
  std::uint64_t ended_ = 0;
  double total_ns_ = 0;
};

using NextNumber = std::function<std::uint32_t()>;

class GetClient final : public Client {
 public:
  GetClient(Fabric& fabric, const StoreOptions& options, NextNumber next)
      : Client(fabric), store_(fabric, options), next_(std::move(next)) {
    while (gets_.size() < kMostUnderWay) gets_.emplace_back();
  }
  [[nodiscard]] Store& store() noexcept { return store_; }
  [[nodiscard]] std::uint64_t bucket_reads() const override {
    return store_.counters().at("bucket_reads");
  }

 private:
  std::size_t poll_layer() override { return store_.poll(); }
  void begin(std::uint32_t call) override {
    fabric().spend(kSimulatedCallNs);
    store_.get(gets_[call], mixed(next_()));
  }
  [[nodiscard]] bool finished(std::uint32_t call) const override {
    if (!gets_[call].finished()) return false;
    StorePair::demand(gets_[call].status());
    if (!gets_[call].found()) throw Error("bench: a simulated get finds no value");
    return true;
  }

  Store store_;
  NextNumber next_;
  std::deque<StoreOperation> gets_;
};

class ReadClient final : public Client {
 public:
  explicit ReadClient(Fabric& fabric)
      : Client(fabric), places_(fabric.allocate({.name = "places", .bytes = kBytes})) {
    fabric.announce(places_);
  }
  ~ReadClient() override {
    for (Slot& slot : slots_) fabric().abandon(slot.done);
  }
  [[nodiscard]] std::uint64_t bucket_reads() const override { return 0; }
  [[nodiscard]] bool connected() const { return fabric().connected(0, places_.id()); }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 16;
  struct Slot {
    Completion done;
    std::array<std::uint64_t, kSimulatedEntryBytes / sizeof(std::uint64_t)> words{};
  };
  std::size_t poll_layer() override { return fabric().poll(); }
  void begin(std::uint32_t call) override {
    Slot& slot = slots_.at(call);
    slot.done.reset();
    at_ = (at_ + kSimulatedEntryBytes) % kBytes;
    const Posted posted = fabric().post(
        read(0, places_.id(), at_, slot.words.data(), kSimulatedEntryBytes).notify(slot.done));
    if (!posted.all()) throw Error("bench: a simulated read was refused");
  }
  [[nodiscard]] bool finished(std::uint32_t call) const override {
    if (slots_.at(call).done.failed()) throw Error("bench: a simulated read has failed");
    return slots_.at(call).done.finished();
  }

  Region places_;
  std::uint64_t at_ = 0;
  std::array<Slot, kMostUnderWay> slots_;
};

/// At all members but the first, which is the server.
template <class OneClient>
void keep_under_way(SimulatedMembers<OneClient>& all, std::uint32_t many) {
  for (Rank rank = 1; rank < all.layers.size(); ++rank)
    all.world.on(rank, [client = all.layers[rank].get(), many] { client->keep_under_way(many); });
}

template <class OneClient>
GetFigures measure(SimulatedMembers<OneClient>& all, std::uint32_t under_way) {
  keep_under_way(all, under_way);
  all.world.run_for(kSettleNs);
  const auto bucket_reads = [&] {
    std::uint64_t sum = 0;
    for (const auto& client : all.layers) sum += client->bucket_reads();
    return static_cast<double>(sum);
  };
  const double before = bucket_reads();
  for (const auto& client : all.layers) client->count_anew();
  all.world.run_for(kWindowNs);
  double ended = 0, total_ns = 0;
  for (const auto& client : all.layers) {
    ended += static_cast<double>(client->ended());
    total_ns += client->total_ns();
  }
  if (ended == 0) throw Error("bench: no simulated call has ended");
  return {.per_second = 1e9 * ended / kWindowNs,
          .latency_ns = total_ns / ended,
          .bucket_reads = (bucket_reads() - before) / ended};
}

template <class OneClient>
std::vector<GetFigures> measure_each(SimulatedMembers<OneClient>& all,
                                     std::span<const std::uint32_t> under_way) {
  std::vector<GetFigures> figures;
  for (const std::uint32_t many : under_way) figures.push_back(measure(all, many));
  return figures;
}

/// Every `step`th pair, from that one.
remote::Job load(Store& store, std::uint32_t from, std::uint32_t step, std::uint32_t pairs) {
  const std::array<std::byte, kSimulatedValueBytes> value{};
  StoreOperation operation;
  for (std::uint32_t i = from; i < pairs; i += step) {
    store.put(operation, mixed(i), value);
    co_await operation;
    StorePair::demand(operation.status());
  }
}

/// Which numbers a client asks for.
NextNumber numbers_of(const SimulatedGets& setting, const std::shared_ptr<SkewedNumbers>& skewed,
                      Rank rank) {
  if (skewed) return [skewed] { return skewed->next(); };
  return [next = rank * 17, pairs = setting.pairs]() mutable { return next++ % pairs; };
}

}  // namespace

sim::Profile drtm_network() {
  sim::Profile network = sim::profile("ideal");
  network.name = "ib56-2015";
  network.source = "the 56 Gb/s InfiniBand cluster on which DrTM-KV was published";
  network.write_latency_ns = 1'500;
  network.read_latency_ns = 2'860;
  network.atomic_latency_ns = 2'860;
  network.bandwidth_bytes_per_ns = 6.8;
  network.nic_gap_ns = 38.5;
  network.jitter = 0.05;
  network.post_ns = network.post_batched_ns = 100;
  network.cpu.poll_ns = 26.8;
  network.queue_slots = 128;
  network.silence_timeout_ns = 0;
  return network;
}

std::vector<GetFigures> simulate_gets(const SimulatedGets& setting,
                                      std::span<const std::uint32_t> under_way,
                                      std::uint64_t seed) {
  constexpr std::uint32_t kLoaders = 32;
  StoreOptions options{.homes = 1,
                       .memory_bytes = store_bytes(setting.pairs, kSimulatedValueBytes),
                       .large_bytes = 0,
                       .expected_keys = setting.pairs,
                       .cache_bytes = setting.cache_bytes};
  std::shared_ptr<SkewedNumbers> skewed;
  if (setting.skew > 0) skewed = std::make_shared<SkewedNumbers>(setting.pairs, setting.skew, seed);
  SimulatedMembers<GetClient> all(setting.network, setting.clients + 1, seed, [&](Fabric& fabric) {
    return std::make_unique<GetClient>(fabric, options, numbers_of(setting, skewed, fabric.rank()));
  });
  for (std::uint32_t i = 0; i < kLoaders; ++i)
    all.start(0, [&setting, i](GetClient& server) {
      return load(server.store(), i, kLoaders, setting.pairs);
    });
  all.finish();
  keep_under_way(all, kMostUnderWay);
  all.run_until([&] {
    return std::all_of(all.layers.begin() + 1, all.layers.end(),
                       [&](const auto& client) { return client->ended() > setting.warm_up; });
  });
  return measure_each(all, under_way);
}

std::vector<GetFigures> simulate_bare_reads(const sim::Profile& network, std::uint32_t clients,
                                            std::span<const std::uint32_t> under_way,
                                            std::uint64_t seed) {
  SimulatedMembers<ReadClient> all(network, clients + 1, seed, [](Fabric& fabric) {
    return std::make_unique<ReadClient>(fabric);
  });
  all.run_until([&] {
    return std::all_of(all.layers.begin() + 1, all.layers.end(),
                       [](const auto& client) { return client->connected(); });
  });
  return measure_each(all, under_way);
}

}  // namespace dunlin::bench
