#include "container/aggregator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "remote/control_channel.hpp"
#include "scoped_flag.hpp"

/// Batches of elements, from each member to each.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

constexpr std::uint64_t kHandledAt = 8, kRefusedAt = 0;  // in a target's line

/// The word that publishes a batch: its number, and how many elements it has.
constexpr std::uint64_t head_of(std::uint64_t number, std::uint32_t count) noexcept {
  return (number + 1) << 16 | count;
}

AggregatorSpec checked_spec(AggregatorSpec spec) {
  check_name("aggregator", spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error("aggregator '" + spec.name + "': " + why);
  };
  if (spec.element_bytes == 0 || spec.element_bytes > kMaxElementBytes)
    refuse("an element has 1 to " + std::to_string(kMaxElementBytes) + " bytes (kMaxElementBytes)");
  if (spec.elements == 0 || spec.elements > kMaxBatchElements)
    refuse("a batch has 1 to " + std::to_string(kMaxBatchElements) +
           " elements (kMaxBatchElements)");
  if (spec.batches == 0 || spec.batches > kMaxBatchesUnderWay)
    refuse("1 to " + std::to_string(kMaxBatchesUnderWay) +
           " batches may be under way (kMaxBatchesUnderWay)");
  return spec;
}

std::string layout_of(const AggregatorSpec& spec) {
  return "aggregator\nelement " + std::to_string(spec.element_bytes) + "\nelements " +
         std::to_string(spec.elements) + "\nbatches " + std::to_string(spec.batches);
}

}  // namespace

AggregatorState::AggregatorState(Containers& its_containers, AggregatorSpec its_spec,
                                 AggregatorCore::Handler its_handler)
    : containers(its_containers),
      hub(its_containers.hub()),
      spec(checked_spec(std::move(its_spec))),
      handler(std::move(its_handler)),
      batch_bytes(kCacheLineBytes +
                  round_up(std::size_t{spec.elements} * spec.element_bytes, kCacheLineBytes)),
      lines_bytes(std::uint64_t{hub.progress.capacity()} * kCacheLineBytes),
      targets(hub.progress.capacity()),
      origins(hub.progress.capacity()),
      image(batch_bytes),
      site(hub, "aggregator", spec.name,
           lines_bytes + hub.progress.capacity() * spec.batches * batch_bytes, layout_of(spec)) {
  for (Target& target : targets) target.memory.resize(spec.batches * batch_bytes);
  hub.add(site.id(), *this);
  site.announce();
}

AggregatorState::~AggregatorState() {
  for (Target& target : targets) hub.fabric.abandon(target.completion);
  for (Origin& origin : origins) hub.fabric.abandon(origin.completion);
  hub.remove(site.id());
}

// --- the origin ----------------------------------------------------------------------------------

void AggregatorState::look_at(Rank to) noexcept {
  Target& target = targets[to];
  const std::byte* const line = site.memory() + std::uint64_t{to} * kCacheLineBytes;
  const std::uint64_t handled =
      memory::load(*reinterpret_cast<const std::uint64_t*>(line + kHandledAt));
  if (handled <= target.handled || handled > target.open) return;  // it may write anything there
  target.handled = handled;
  target.refused = memory::load(*reinterpret_cast<const std::uint64_t*>(line + kRefusedAt));
}

bool AggregatorState::has_room(Rank to) noexcept {
  Target& target = targets[to];
  if (target.sending || target.filled == spec.elements) return false;
  if (target.open - target.handled < spec.batches) return true;
  look_at(to);
  return target.open - target.handled < spec.batches;
}

std::byte* AggregatorState::push(Rank to, std::size_t& count) {
  if (lost(to)) return nullptr;
  if (!has_room(to)) {
    send_open(to);
    hub.progress.poll_in_passing();
    if (!has_room(to)) return nullptr;
  }
  Target& target = targets[to];
  const std::size_t before = target.filled;
  count = std::min(count, spec.elements - before);
  target.filled += static_cast<std::uint32_t>(count);
  return batch_of(target) + kCacheLineBytes + before * spec.element_bytes;
}

/// Polls send a batch that is full.
Protocol<Status> AggregatorState::wait_for_room(Rank to) {
  co_await Until([&] { return lost(to) || has_room(to); });
  co_return lost(to) ? Status::lost : Status::ok;
}

Protocol<Status> AggregatorState::flush() {
  struct Flushing {
    std::uint32_t& flushes;
    explicit Flushing(std::uint32_t& all) noexcept : flushes(all) { ++flushes; }
    ~Flushing() { --flushes; }
  } const flushing(flushes);
  for (Rank rank = 0; rank < targets.size(); ++rank)
    if (rank != hub.fabric.rank()) post_open(rank);
  // What a handler throws must not leave a protocol, so a poll hands the own batch over.
  if (targets[hub.fabric.rank()].filled > 0) hub.look_again_soon();
  bool any_lost = false;
  for (Rank rank = 0; rank < targets.size(); ++rank) {
    co_await Until([&] { return lost(rank) || is_taken(rank); });
    any_lost = any_lost || !is_taken(rank);
  }
  co_return any_lost ? Status::lost : Status::ok;
}

void AggregatorState::finish_batch(Target& target) noexcept {
  DUNLIN_ASSERT(target.filled > 0, "CON-B1: a batch has elements");
  ++target.open;
  target.filled = 0;
  target.accepted = 0;
  target.sending = false;
}

std::size_t AggregatorState::hand_over(Rank from, std::span<const std::byte> elements,
                                       std::uint64_t& refused) {
  DUNLIN_ASSERT(!handing_over, "CON-B1: a handler is called once at a time");
  const ScopedFlag handing(handing_over);
  const std::size_t count = elements.size() / spec.element_bytes;
  DUNLIN_ASSERT(elements.size() % spec.element_bytes == 0,
                "CON-B1: elements are handed over whole");
  struct Account {
    Handled done;
    std::size_t& taken;
    std::uint64_t& refused;
    ~Account() {
      taken += done.taken;
      refused += done.refused;
    }
  } account{{.taken = count, .refused = count}, origins[from].taken, refused};
  const Handled done = handler(from, elements, count);
  account.done = {.taken = std::min(done.taken, count), .refused = done.refused};
  return account.done.taken;
}

void AggregatorState::send_open(Rank to) {
  if (to != hub.fabric.rank()) return post_open(to);
  Target& target = targets[to];
  Origin& own = origins[to];
  if (target.filled == 0 || handing_over) return;
  DUNLIN_ASSERT(own.taken <= target.filled, "CON-B1: no more is taken than there is");
  const std::size_t offset = own.taken * spec.element_bytes;
  const std::size_t left = target.filled * spec.element_bytes - offset;
  if (left > 0)
    hand_over(to, std::span(batch_of(target) + kCacheLineBytes + offset, left), target.refused);
  if (own.taken < target.filled) return hub.look_again_soon();
  own.taken = 0;
  finish_batch(target);
  target.handled = target.open;
}

void AggregatorState::post_open(Rank to) noexcept {
  Target& target = targets[to];
  if (target.filled == 0 || target.lost) return;
  DUNLIN_ASSERT(target.open - target.handled <= spec.batches && target.filled <= spec.elements,
                "CON-B1: a batch is filled in a place that the target has handled");
  std::byte* const batch = batch_of(target);
  if (site.fault(to) != Status::ok) {
    target.lost = true;
    return;
  }
  // The batch before it has been posted as a whole, and its place was handled: no member reads
  // here.
  const std::uint64_t at = ring_at(hub.fabric.rank(), target.open);
  if (!target.sending) {
    const std::uint64_t head = head_of(target.open, target.filled);
    std::memcpy(batch, &head, sizeof head);
    target.sending = true;
  }
  const std::array operations{
      put(to, site.region(), at + kCacheLineBytes, batch + kCacheLineBytes,
          std::size_t{target.filled} * spec.element_bytes),
      write(to, site.region(), at, batch, kWordBytes).notify(target.completion)};
  switch (site.post(to, operations, target.accepted)) {
    case Site::Posted::all:
      return finish_batch(target);
    case Site::Posted::later:
      return;
    case Site::Posted::never:
      target.lost = true;
      return;
  }
}

bool AggregatorState::is_taken(Rank to) noexcept {
  const Target& target = targets[to];
  if (target.handled != target.open) look_at(to);
  return target.filled == 0 && target.handled == target.open;
}

// --- the target ----------------------------------------------------------------------------------

/// CON-B1: a batch is looked at once its head says so, and then the next number is waited for.
std::size_t AggregatorState::take_from(Rank from) {
  Origin& origin = origins[from];
  std::size_t done = 0;
  for (;;) {
    const std::byte* const batch = site.memory() + ring_at(from, origin.next);
    const std::uint64_t head = memory::load(*reinterpret_cast<const std::uint64_t*>(batch));
    const std::size_t count = head & 0xffff;
    if (head >> 16 != origin.next + 1 || count == 0 || count > spec.elements) break;
    if (origin.taken > count) break;  // the origin has changed what it had published
    const std::size_t left = (count - origin.taken) * spec.element_bytes;
    DUNLIN_ASSERT(left <= image.size(), "CON-B1: a batch has at most the elements of its option");
    memory::copy_unwatched(image.data(),
                           batch + kCacheLineBytes + origin.taken * spec.element_bytes, left);
    // Nothing is left if the handler threw when it had the rest.
    if (left > 0) done += hand_over(from, std::span(image).first(left), origin.refused);
    if (origin.taken < count) {
      hub.look_again_soon();
      break;
    }
    origin.taken = 0;
    ++origin.next;
  }
  if (origin.told != origin.next) acknowledge(from);
  return done;
}

/// What is said twice is said again later: only the last number counts.
void AggregatorState::acknowledge(Rank from) noexcept {
  Origin& origin = origins[from];
  if (!origin.completion.finished() || site.fault(from) != Status::ok) return;
  DUNLIN_ASSERT(origin.told <= origin.next, "CON-B2: an origin hears of what was handled");
  origin.word = {origin.refused, origin.next};
  const Operation tell =
      write(from, site.region(), std::uint64_t{hub.fabric.rank()} * kCacheLineBytes,
            origin.word.data(), sizeof origin.word)
          .notify(origin.completion);
  std::size_t accepted = 0;
  if (site.post(from, std::span(&tell, 1), accepted) == Site::Posted::all)
    origin.told = origin.next;
}

std::size_t AggregatorState::poll_part() {
  if (handing_over) return 0;
  std::size_t done = 0;
  const Rank self = hub.fabric.rank();
  for (Rank rank = 0; rank < origins.size(); ++rank)
    if (rank != self) done += take_from(rank);
  for (Rank rank = 0; rank < targets.size(); ++rank) {
    Target& target = targets[rank];
    if (target.sending || target.filled == spec.elements || flushes > 0) send_open(rank);
  }
  return done;
}

void AggregatorState::members_changed() {
  for (Rank rank = 0; rank < targets.size(); ++rank)
    if (hub.gone(rank)) targets[rank].lost = true;
}

// --- the interface -------------------------------------------------------------------------------

AggregatorCore::AggregatorCore(Containers& containers, const AggregatorSpec& spec, Handler handler)
    : state_(std::make_unique<AggregatorState>(containers, spec, std::move(handler))) {}
AggregatorCore::~AggregatorCore() = default;
std::byte* AggregatorCore::push(Rank to, std::size_t& count) { return state_->push(to, count); }
Containers& AggregatorCore::containers() const noexcept { return state_->containers; }
bool AggregatorCore::lost(Rank to) const noexcept { return state_->lost(to); }
remote::Call<Status> AggregatorCore::wait_for_room(Rank to) {
  return {state_->hub.progress, state_->wait_for_room(to)};
}
remote::Call<Status> AggregatorCore::flush() { return {state_->hub.progress, state_->flush()}; }

std::uint64_t AggregatorCore::refused() const noexcept {
  std::uint64_t all = 0;
  for (const auto& target : state_->targets) all += target.refused;
  return all;
}

}  // namespace dunlin::container
