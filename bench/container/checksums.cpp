#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <dunlin/container/slot.hpp>

#include "bench/container/container_node.hpp"
#include "bench/container/experiments.hpp"

namespace dunlin::bench {
namespace {

using container::SlotShape;

constexpr std::array<std::uint32_t, 5> kElementBytes{8, 48, 256, 1024, 4096};
constexpr std::uint32_t kSlots = 64;
constexpr std::size_t kSumBytes = 8;
constexpr std::size_t kMostBytes = container::shape_of(kMaxElementBytes).slot_bytes;

/// Of an element and its ticket. Four words at once: a chain of single words would take four times
/// as long.
std::uint64_t checksum_of(const std::byte* element, std::size_t bytes, std::uint64_t ticket) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  std::array<std::uint64_t, 4> lanes{ticket, ticket + kOdd, ~ticket, ticket ^ kOdd};
  std::array<std::uint64_t, 4> words{};
  for (; bytes >= sizeof words; bytes -= sizeof words, element += sizeof words) {
    std::memcpy(words.data(), element, sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i)
      lanes[i] = std::rotl((lanes[i] ^ words[i]) * kOdd, 31);
  }
  if (bytes > 0) {
    words.fill(bytes);
    std::memcpy(words.data(), element, bytes);
    for (std::size_t i = 0; i < lanes.size(); ++i)
      lanes[i] = std::rotl((lanes[i] ^ words[i]) * kOdd, 31);
  }
  return container::hash_of(lanes.data(), sizeof lanes);
}

/// Pushes and pops, as their operations of the fabric, of elements in either form: in slots with
/// stamps, as queues have them, or with a checksum of element and ticket behind the element.
class TwoForms {
 public:
  TwoForms(ContainerPair& pair, std::uint32_t element_bytes)
      : node_(pair.node()),
        shape_(container::shape_of(element_bytes)),
        region_(
            node_.fabric().allocate({.name = "checksums", .bytes = kHead + kSlots * kMostBytes})),
        element_(element_bytes) {
    node_.fabric().announce(region_);
    while (!node_.fabric().connected(ContainerPair::kHolder, region_.id()))
      pair.containers().poll();
    pair.meet();
  }
  TwoForms(const TwoForms&) = delete;
  TwoForms& operator=(const TwoForms&) = delete;
  ~TwoForms() { node_.fabric().abandon(done_); }

  void push_stamped() {
    const std::uint64_t ticket = take_ticket();
    container::encode(shape_, element_.data(), ticket + 1, image_.data());
    put(ticket, shape_.slot_bytes);
  }
  void push_summed() {
    const std::uint64_t ticket = take_ticket();
    const std::uint64_t sum = checksum_of(element_.data(), element_.size(), ticket);
    std::memcpy(image_.data(), element_.data(), element_.size());
    std::memcpy(image_.data() + element_.size(), &sum, kSumBytes);
    put(ticket, element_.size() + kSumBytes);
  }
  void pop_stamped() {
    get(shape_.slot_bytes);
    if (!container::is_whole(shape_, image_.data()) ||
        container::word_at(image_.data()) != next_ + 1)
      throw Error("bench: a slot is not whole");
    move_head();
    container::decode(shape_, image_.data(), 0, shape_.payload_bytes, element_.data());
  }
  void pop_summed() {
    get(element_.size() + kSumBytes);
    if (checksum_of(image_.data(), element_.size(), next_) !=
        container::word_at(image_.data() + element_.size()))
      throw Error("bench: a checksum is wrong");
    move_head();
    std::memcpy(element_.data(), image_.data(), element_.size());
  }
  /// All slots, so that pops find what they look for.
  void fill(bool stamped) {
    for (std::uint32_t i = 0; i < kSlots; ++i) stamped ? push_stamped() : push_summed();
  }

 private:
  static constexpr std::uint64_t kHead = 2 * kCacheLineBytes;

  [[nodiscard]] static std::uint64_t at(std::uint64_t ticket) noexcept {
    return kHead + ticket * kMostBytes;
  }
  /// The tickets repeat, so that what was pushed once can be popped again and again.
  std::uint64_t take_ticket() {
    finish(fetch_add(ContainerPair::kHolder, region_.id(), 0, 1, &former_).notify(done_));
    return next_ = (next_ + 1) % kSlots;
  }
  void put(std::uint64_t ticket, std::size_t bytes) {
    finish(write(ContainerPair::kHolder, region_.id(), at(ticket), image_.data(), bytes)
               .notify(done_, Notify::remotely));
  }
  void get(std::size_t bytes) {
    next_ = (next_ + 1) % kSlots;
    finish(
        read(ContainerPair::kHolder, region_.id(), at(next_), image_.data(), bytes).notify(done_));
  }
  void move_head() {
    finish(compare_swap(ContainerPair::kHolder, region_.id(), kCacheLineBytes, head_, head_ + 1,
                        &former_)
               .notify(done_));
    head_ = former_ + 1;
  }
  void finish(const Operation& operation) {
    node_.post(operation);
    while (!done_.finished()) node_.poll();
  }

  Node& node_;
  SlotShape shape_;
  Region region_;
  std::uint64_t next_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t former_ = 0;
  std::vector<std::byte> element_;
  alignas(kCacheLineBytes) std::array<std::byte, kMostBytes> image_{};
  Completion done_;
};

std::vector<Result> measure(const RealNetwork& network, const Effort& effort, std::uint32_t bytes) {
  const Batches plan = effort.plan(50, std::min(network.trips_per_batch, 64U));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    ContainerPair pair(me, group);
    TwoForms forms(pair, bytes);
    const auto timed = [&](bool stamped, void (TwoForms::*once)()) {
      return [&, stamped, once] {
        return pair.turn([&] {
          forms.fill(stamped);
          return batch_ns(plan, [&] { (forms.*once)(); });
        });
      };
    };
    alternate(me, effort.rounds,
              {timed(true, &TwoForms::push_stamped), timed(false, &TwoForms::push_summed),
               timed(true, &TwoForms::pop_stamped), timed(false, &TwoForms::pop_summed)});
  });
  std::vector<Result> results;
  for (const std::uint32_t pops : {0U, 1U}) {
    results.push_back(compared(
        {.params = {{"call", pops != 0 ? "pop" : "push"}, {"bytes", double(bytes)}}, .unit = "ns"},
        team.series(2 * pops), "with a checksum in place of stamps", team.series(2 * pops + 1)));
  }
  return results;
}

}  // namespace

Experiment queue_checksums(const RealNetwork& network) {
  return {.name = "checksums",
          .title = "the bare operations of a push and a pop, with stamps and with a checksum",
          .fabric = network.name,
          .x = "bytes",
          .run = on_network(network, for_settings(kElementBytes, measure))};
}

}  // namespace dunlin::bench
