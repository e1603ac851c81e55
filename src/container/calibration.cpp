#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include <dunlin/container/calibration.hpp>
#include <dunlin/container/hash_map.hpp>
#include <dunlin/container/queue.hpp>
#include <dunlin/error.hpp>

#include "container/hub.hpp"
#include "container/steps.hpp"
#include "remote/control_channel.hpp"

namespace dunlin {
namespace container {

using remote::Status;

namespace {

constexpr std::uint32_t kTripsPerBatch = 16;
constexpr std::uint32_t kLoadsPerBatch = 64;  // of operations that take less than the clock
constexpr std::size_t kLargeBytes = 1024;     // for what each further byte costs
constexpr std::size_t kLargeMessage = kMaxMessageBytes - kMessageHeader;
constexpr std::uint64_t kSharedAt = 0;             // the word to which all add
constexpr std::uint64_t kOwnAt = kCacheLineBytes;  // a line for each member
constexpr std::uint64_t kRoomFor = 4096;

// Where memory is mapped, pages and caches decide what a call costs: it is measured in containers
// that are larger than the caches of a core, on few enough slots that these stay in them.
constexpr std::uint32_t kMapSlots = 1U << 19;
constexpr std::uint32_t kOtherKeys = kMapSlots / 8;
constexpr std::uint32_t kQueueCapacity = 1U << 15;
constexpr std::uint32_t kMostCalls = 3200;
constexpr std::size_t kEvictingBytes = std::size_t{64} << 20;

}  // namespace

/// Answers each request with as many bytes as it has.
struct CalibrationState final : Served {
  explicit CalibrationState(Containers& containers)
      : hub(containers.hub()),
        data_at(round_up(kOwnAt + hub.progress.capacity() * kCacheLineBytes, kRoomFor)),
        site(hub, "calibration", "costs", data_at + hub.progress.capacity() * kRoomFor,
             "calibration 1"),
        map(containers, {.name = "calibration map",
                         .slots = is_mapped() ? kMapSlots : 64,
                         .style = Style::one_sided}),
        queue(containers, {.name = "calibration queue",
                           .capacity = is_mapped() ? kQueueCapacity : 64,
                           .host = hub.progress.size() - 1,
                           .style = Style::one_sided}) {
    hub.add(site.id(), *this);
    site.announce();
  }
  ~CalibrationState() override {
    hub.fabric.abandon(done);
    hub.remove(site.id());
  }
  CalibrationState(const CalibrationState&) = delete;
  CalibrationState& operator=(const CalibrationState&) = delete;

  std::size_t poll_part() override { return 0; }
  void members_changed() override {}
  void handle(Rank from, const MessageHead& head, std::span<const std::byte> content) override {
    if (head.kind != MessageKind::request) return;
    hub.send(from, reply_to(head, Status::ok), content);
  }

  [[nodiscard]] remote::Progress& its_progress() const noexcept { return hub.progress; }
  [[nodiscard]] std::uint64_t own_word() const noexcept {
    return kOwnAt + std::uint64_t{hub.fabric.rank()} * kCacheLineBytes;
  }
  [[nodiscard]] std::uint64_t own_data() const noexcept {
    return data_at + std::uint64_t{hub.fabric.rank()} * kRoomFor;
  }
  [[nodiscard]] bool is_mapped() const noexcept { return hub.fabric.properties().reads_are_loads; }
  void demand(Rank target) const {
    if (target != hub.fabric.rank() && site.fault(target) == Status::ok && !hub.progress.stopped())
      return;
    throw Error(
        "calibration: member " + std::to_string(target) +
        (target == hub.fabric.rank() ? " is this one, and another is to be measured" : " is lost"));
  }
  /// Posts, and polls until it is done.
  void trip(Rank target, std::span<const Operation> batch) {
    std::size_t accepted = 0;
    while (site.post(target, batch, accepted) != Site::Posted::all) {
      demand(target);
      hub.progress.poll();
    }
    while (!done.finished()) {
      hub.progress.poll();
      if (hub.progress.stopped()) demand(target);
    }
    if (done.failed()) demand(target);
  }
  void trip(Rank target, const Operation& one) { trip(target, std::span(&one, 1)); }
  /// A request and its reply, of so many bytes.
  void echo(Rank target, std::size_t bytes) {
    remote::Call<Status> call(hub.progress, ask(target, bytes));
    while (!call.finished()) {
      hub.progress.poll();
      if (hub.progress.stopped()) demand(target);
    }
    if (!call.ok()) demand(target);
  }
  remote::Protocol<Status> ask(Rank target, std::size_t bytes) {
    Asked asked(hub, site, target, {.container = site.id()}, std::span(request).first(bytes), {});
    const Reply reply = co_await asked;
    co_return reply.status == Status::ok ? Status::ok : Status::lost;
  }
  template <class Once>
  double median_ns(std::uint32_t batches, const Once& once) {
    const std::uint32_t trips = is_mapped() ? kLoadsPerBatch : kTripsPerBatch;
    std::vector<double> times(std::max(batches, 1U));
    for (double& time : times) {
      const std::uint64_t start = hub.fabric.now_ns();
      for (std::uint32_t i = 0; i < trips; ++i) once();
      time = static_cast<double>(hub.fabric.now_ns() - start) / trips;
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  [[nodiscard]] std::vector<std::uint64_t> new_keys(Rank target, std::size_t count) {
    std::vector<std::uint64_t> keys;
    for (; keys.size() < count; ++next_key)
      if (map.home_of(next_key) == target) keys.push_back(next_key);
    return keys;
  }
  /// Once: a search also meets slots of other keys, and a page is mapped into this process the
  /// first time that it is used.
  void fill(Rank target) {
    if (next_key > 1) return;
    for (const std::uint64_t key : new_keys(target, kOtherKeys))
      finish(map.insert(key, key), target);
    for (std::uint32_t i = 0; i < kQueueCapacity; ++i) {
      finish(queue.push(i), target);
      finish(queue.pop(), target);
    }
  }
  void finish(auto call, Rank target) const {
    if (call.wait() != Status::ok) demand(target);
  }

  Hub& hub;
  std::uint64_t data_at;
  Site site;
  Completion done;
  std::array<std::byte, kLargeMessage> request{};
  HashMap<std::uint64_t, std::uint64_t> map;
  Queue<std::uint64_t> queue;
  std::uint64_t next_key = 1;
};

namespace {

/// What a call takes besides its operations: on slots that were used lately, which are in a cache
/// near, and what it takes more on others.
void measure_computing(CalibrationState& at, Rank target, std::uint32_t batches,
                       ComponentCosts& costs) {
  batches = std::min(batches, kMostCalls / kLoadsPerBatch);
  const auto measure = [&](std::array<double, kCalls>& into, Call call, const auto& once) {
    const double ns = at.median_ns(batches, [&] { at.finish(once(), target); });
    const Situation near{.load = double{kOtherKeys} / kMapSlots, .used_lately = true};
    double& cost = into.at(static_cast<std::size_t>(call));
    cost = std::max(ns - predict_ns(costs, call, Style::one_sided, near), 0.0);
  };
  const auto measure_map = [&](std::array<double, kCalls>& into, const auto& before) {
    const std::vector<std::uint64_t> keys =
        at.new_keys(target, std::size_t{batches} * kLoadsPerBatch);
    const auto each = [&](Call call, auto begin) {
      before(keys);
      std::size_t next = 0;
      measure(into, call, [&] { return begin(keys[next++]); });
    };
    each(Call::insert, [&](std::uint64_t key) { return at.map.insert(key, key); });
    each(Call::assign, [&](std::uint64_t key) { return at.map.assign(key, key); });
    each(Call::find, [&](std::uint64_t key) { return at.map.find(key); });
    each(Call::erase, [&](std::uint64_t key) { return at.map.erase(key); });
  };
  at.fill(target);
  measure_map(costs.computing_ns, [&](const std::vector<std::uint64_t>& keys) {
    for (const std::uint64_t key : keys) at.finish(at.map.find(key), target);
  });
  std::vector<std::uint8_t> other(kEvictingBytes);
  measure_map(costs.far_ns,
              [&](const std::vector<std::uint64_t>&) { std::ranges::fill(other, other[0] + 1); });
  measure(costs.computing_ns, Call::push, [&] { return at.queue.push(0); });
  measure(costs.computing_ns, Call::pop, [&] { return at.queue.pop(); });
}

double of_each_byte(double large_ns, double small_ns, std::size_t bytes) {
  return std::max(large_ns - small_ns, 0.0) / static_cast<double>(bytes - kWordBytes);
}

}  // namespace
}  // namespace container

Calibration::Calibration(Containers& containers)
    : state_(std::make_unique<container::CalibrationState>(containers)) {}
Calibration::~Calibration() = default;

ComponentCosts Calibration::measure(Rank target, std::uint32_t batches) {
  using namespace container;
  CalibrationState& at = *state_;
  at.demand(target);
  const RegionId region = at.site.region();
  std::vector<std::uint64_t> memory(kLargeBytes / kWordBytes);
  std::uint64_t before = 0, expected = 0;
  const auto reads = [&](std::size_t bytes) {
    return [&, bytes] {
      at.trip(target, read(target, region, at.own_data(), memory.data(), bytes).notify(at.done));
    };
  };
  const auto write_of = [&](std::size_t bytes, std::uint64_t offset) {
    return write(target, region, at.own_data() + offset, memory.data(), bytes)
        .notify(at.done, Notify::remotely);
  };
  const auto writes = [&](std::size_t bytes) {
    return [&, bytes] { at.trip(target, write_of(bytes, 0)); };
  };
  const auto write_pair = [&] {
    at.trip(target, std::array{write_of(kWordBytes, 0), write_of(kWordBytes, kCacheLineBytes)});
  };
  const auto swap = [&] {
    at.trip(target, compare_swap(target, region, at.own_word(), expected, expected + 1, &before)
                        .notify(at.done));
    expected = before == expected ? expected + 1 : before;
  };
  const auto add = [&] {
    at.trip(target, fetch_add(target, region, at.own_word(), 1, &before).notify(at.done));
  };
  const auto echoes = [&](std::size_t bytes) { return [&, bytes] { at.echo(target, bytes); }; };

  ComponentCosts costs;
  static_cast<void>(at.median_ns(batches / 4, reads(kWordBytes)));  // all is warm after that
  costs.read_ns = at.median_ns(batches, reads(kWordBytes));
  costs.write_ns = at.median_ns(batches, writes(kWordBytes));
  costs.compare_swap_ns = at.median_ns(batches, swap);
  costs.fetch_add_ns = at.median_ns(batches, add);
  costs.message_ns = at.median_ns(batches, echoes(kWordBytes));
  costs.byte_ns =
      of_each_byte(at.median_ns(batches, reads(kLargeBytes)), costs.read_ns, kLargeBytes);
  costs.message_byte_ns =
      of_each_byte(at.median_ns(batches, echoes(kLargeMessage)), costs.message_ns, kLargeMessage);
  costs.batched_ns = std::max(at.median_ns(batches, write_pair) - costs.write_ns, 0.0);
  const bool has_part = at.hub.is_founder(target);  // of a map; a later member has none
  if (has_part && at.is_mapped() && !at.hub.fabric.reach(target, region).empty())
    measure_computing(at, target, batches, costs);
  return costs;
}

double Calibration::measure_shared_word(Rank target, std::uint32_t batches) {
  using namespace container;
  CalibrationState& at = *state_;
  at.demand(target);
  std::uint64_t before = 0;
  return at.median_ns(batches, [&] {
    at.trip(target, fetch_add(target, at.site.region(), kSharedAt, 1, &before).notify(at.done));
  });
}

}  // namespace dunlin
