#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/load_estimate.hpp"
#include "container/queue.hpp"
#include "container/small_slot.hpp"
#include "fabric/thread_guard.hpp"

/// A queue at its host; calls where its memory is mapped, as at the host and on shm; and those that
/// come by message.
namespace dunlin::container {

using remote::Status;

namespace {

QueueSpec checked(QueueSpec spec, const Hub& hub) {
  check_name("queue", spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error("queue '" + spec.name + "': " + why);
  };
  if (spec.element_bytes == 0 || spec.element_bytes > kMaxElementBytes)
    refuse("an element has 1 to " + std::to_string(kMaxElementBytes) + " bytes (kMaxElementBytes)");
  if (spec.capacity == 0 || spec.capacity > kMaxSlots)
    refuse("its capacity is 1 to " + std::to_string(kMaxSlots) + " (kMaxSlots)");
  if (spec.host >= hub.fabric.size())
    refuse("the group has no member " + std::to_string(spec.host) + ", only 0 to " +
           std::to_string(hub.fabric.size() - 1));
  // Elements that no message holds go one-sided, at every member.
  if (kMessageHeader + spec.element_bytes > kMaxMessageBytes) spec.style = Style::one_sided;
  if (spec.style == Style::automatic)
    spec.style =
        hub.settled_style({Call::push, Call::pop},
                          {.clients = clients_of_host(hub.progress.size()),
                           .bytes = static_cast<double>(shape_of(spec.element_bytes).slot_bytes)});
  return spec;
}

std::string layout_of(const QueueSpec& spec) {
  return "queue\nelement " + std::to_string(spec.element_bytes) + "\ncapacity " +
         std::to_string(spec.capacity) + "\nhost " + std::to_string(spec.host) +
         "\nwrites_by_message " + (spec.style == Style::message ? "1" : "0") +
         (spec.checked ? "\nchecked" : "");
}

constexpr CheckedCalls kQueueCalls{
    .kind = "queue", .names = {"push", "pop"}, .writes = {true, false}};

std::uint64_t& word_of(std::byte* queue, std::uint64_t offset) noexcept {
  return *reinterpret_cast<std::uint64_t*>(queue + offset);
}

}  // namespace

QueueState::QueueState(Containers& its_containers, QueueSpec its_spec)
    : containers(its_containers),
      hub(its_containers.hub()),
      spec(checked(std::move(its_spec), hub)),
      shape(shape_of(spec.element_bytes)),
      coherent(hub.fabric.properties().atomics_coherent_with_cpu),
      site(hub, "container", spec.name, is_host() ? queue_bytes : kQueueSlots, layout_of(spec)),
      checker(spec.checked ? std::make_unique<Checker>(hub, kQueueCalls, spec.name, site)
                           : nullptr),
      image(shape.slot_bytes),
      answered(hub.progress.capacity()) {
  if (is_host()) memory::store(own_word(kGenerationOffset), mended_in);
  remote::ProtocolState* marker = nullptr;
  protocols.start(mark_orphans(), marker);
  if (marker == nullptr) throw std::bad_alloc();
  hub.add(site.id(), *this);
  site.announce();
}

QueueState::~QueueState() {
  protocols.end_all(Status::abandoned);
  hub.remove(site.id());
}

std::uint64_t QueueState::size() noexcept {
  if (is_host()) {
    const std::uint64_t tail = memory::load(own_word(kTailOffset));
    saw(tail, std::min(tail, memory::load(own_word(kHeadOffset))));
  }
  return seen_size();
}

// --- slots that follow each other ----------------------------------------------------------------

namespace {

/// Sizes of elements in small slots that are worth code of their own; 0: any other.
template <class Work>
[[gnu::always_inline]] inline auto for_bytes(std::uint32_t bytes, const Work& work) noexcept {
  if (bytes == 8) return work(std::integral_constant<std::uint32_t, 8>());
  if (bytes == 16) return work(std::integral_constant<std::uint32_t, 16>());
  return work(std::integral_constant<std::uint32_t, 0>());
}

}  // namespace

[[gnu::always_inline]] inline void QueueState::fill(std::byte* slot, const std::byte* elements,
                                                    std::uint64_t stamp,
                                                    std::uint32_t count) noexcept {
  if (shape.slot_bytes != kSmallSlotBytes) return fill_large(slot, elements, stamp, count);
  for_bytes(spec.element_bytes, [&](auto known) noexcept {
    const std::uint32_t bytes = known > 0 ? known : spec.element_bytes;
    const std::byte* const end = slot + std::size_t{count} * kSmallSlotBytes;
    for (; slot != end; slot += kSmallSlotBytes, elements += bytes, ++stamp) {
      memory::store(word_of_slot(slot, 0), stamp);
      place_small_payload(slot, elements, bytes, stamp);
    }
  });
}

void QueueState::fill_large(std::byte* slot, const std::byte* elements, std::uint64_t stamp,
                            std::uint32_t count) noexcept {
  DUNLIN_ASSERT(count <= spec.capacity, "CON-Q2: a run of slots is in the ring");
  for (; count > 0; --count, slot += shape.slot_bytes, elements += spec.element_bytes) {
    encode(shape, elements, stamp++, image.data());
    memory::place(slot, image.data(), shape.slot_bytes);
  }
}

[[gnu::always_inline]] inline std::uint32_t QueueState::take(const std::byte* slot, std::byte* to,
                                                             std::uint64_t stamp,
                                                             std::uint32_t most) noexcept {
  if (shape.slot_bytes != kSmallSlotBytes) return take_large(slot, to, stamp, most);
  return for_bytes(spec.element_bytes, [&](auto known) noexcept {
    const std::uint32_t bytes = known > 0 ? known : spec.element_bytes;
    for (std::uint32_t i = 0; i < most; ++i, slot += kSmallSlotBytes, to += bytes) {
      const SmallSlot seen = fetch_small(slot);
      if (seen.word != stamp + i || seen.stamp != stamp + i) return i;
      copy_bytes(to, seen.payload, bytes);
    }
    return most;
  });
}

std::uint32_t QueueState::take_large(const std::byte* slot, std::byte* to, std::uint64_t stamp,
                                     std::uint32_t most) noexcept {
  DUNLIN_ASSERT(most <= spec.capacity, "CON-Q1: a run of slots is in the ring");
  for (std::uint32_t i = 0; i < most; ++i, slot += shape.slot_bytes, to += spec.element_bytes) {
    memory::fetch(image.data(), slot, shape.slot_bytes);
    if (word_at(image.data()) != stamp + i || !is_whole(shape, image.data())) return i;
    decode(shape, image.data(), 0, spec.element_bytes, to);
  }
  return most;
}

// --- calls in mapped memory ----------------------------------------------------------------------

// These return scalars, which stay in registers: a struct of some bytes would be written and read
// in different pieces, for which a processor waits.

bool QueueState::works_directly(Promise promise) const noexcept {
  return is_host() && (coherent || spec.style == Style::message || promise == Promise::local);
}

std::byte* QueueState::mapped(const QueueTerms& terms) noexcept {
  if (is_host()) return works_directly(terms.promise) ? site.memory() : nullptr;
  if (!coherent || terms.style == Style::message || spec.style == Style::message) return nullptr;
  return site.mapped(spec.host, queue_bytes);
}

[[gnu::always_inline]] inline Status QueueState::local_push(std::byte* queue,
                                                            const std::byte* elements,
                                                            std::uint32_t count) noexcept {
  const std::uint64_t tail = memory::load(word_of(queue, kTailOffset));
  const std::uint64_t head = memory::load(word_of(queue, kHeadOffset));
  DUNLIN_ASSERT(count <= spec.capacity, "CON-Q2: no push has more than the ring");
  const bool has_room = tail - head <= std::uint64_t{spec.capacity} - count;  // never, beyond it
  if (has_room && memory::compare_swap(queue + kTailOffset, tail, tail + count) != tail)
    return Status::under_way;
  if (!has_room && head > tail) return Status::under_way;  // CON-Q8
  saw(has_room ? tail + count : tail, head);
  if (!has_room) return Status::full;
  for (std::uint32_t done = 0; done < count;) {  // twice at most: up to the ring's end, and on
    const std::uint32_t run = std::min(count - done, slots_before_end(tail + done));
    fill(queue + offset_of(tail + done), elements + std::size_t{done} * spec.element_bytes,
         tail + done + 1, run);
    done += run;
  }
  return Status::ok;
}

[[gnu::always_inline]] inline Status QueueState::local_pop(std::byte* queue, std::byte* to,
                                                           std::uint32_t& popped) noexcept {
  std::uint64_t head = memory::load(word_of(queue, kHeadOffset));
  const std::uint32_t wanted = std::min(popped, spec.capacity);
  std::uint32_t count = 0;
  for (;; ++head) {
    bool goes_on = count < wanted;
    while (goes_on) {
      const std::uint32_t run = std::min(wanted - count, slots_before_end(head + count));
      const std::uint32_t taken =
          take(queue + offset_of(head + count), to + std::size_t{count} * spec.element_bytes,
               head + count + 1, run);
      count += taken;
      goes_on = taken == run && count < wanted;
    }
    const std::byte* const slot = queue + offset_of(head);
    if (count > 0 || memory::load(word_of_slot(slot, 0)) != ((head + 1) | kSkip)) break;
    if (memory::compare_swap(queue + kHeadOffset, head, head + 1) != head) return Status::under_way;
  }
  DUNLIN_ASSERT(count <= wanted && wanted <= spec.capacity,
                "CON-Q1: no pop has more than it asks for");
  if (count == 0) {
    const std::uint64_t tail = memory::load(word_of(queue, kTailOffset));
    if (tail > head) return Status::under_way;
    saw(tail, tail);
    return Status::empty;
  }
  if (memory::compare_swap(queue + kHeadOffset, head, head + count) != head)
    return Status::under_way;
  saw(head + count, head + count);
  popped = count;
  return Status::ok;
}

Status QueueState::at_once(const std::byte* elements, std::byte* to, std::uint32_t& count,
                           const QueueTerms& terms) noexcept {
  std::byte* const queue = mapped(terms);
  if (queue == nullptr) return Status::under_way;
  const Status status =
      elements != nullptr ? local_push(queue, elements, count) : local_pop(queue, to, count);
  if (status == Status::under_way) return status;
  if (status == Status::ok || terms.wait_ns == 0)
    ++(is_host() ? counters.local : counters.one_sided);
  if (status == Status::ok) {
    if (!is_host()) hub.fabric.ring(spec.host);
    if (waiting_in_memory > 0) hub.fabric.ring(hub.fabric.rank());  // its thread may sleep
  }
  return status;
}

Status QueueState::begin(const std::byte* elements, std::byte* to, std::uint32_t& count,
                         const QueueTerms& terms) noexcept {
  DUNLIN_ONE_THREAD(&hub.fabric);
  if (count == 0) return Status::ok;
  if (hub.progress.was_stopped()) return Status::under_way;
  if (elements != nullptr && count > spec.capacity) return Status::out_of_range;
  if (checker != nullptr) return Status::under_way;
  const Status status = at_once(elements, to, count, terms);
  return status != Status::ok && terms.wait_ns > 0 ? Status::under_way : status;
}

// --- the interface -------------------------------------------------------------------------------

QueueCore::QueueCore(Containers& containers, const QueueSpec& spec)
    : containers_(containers),
      progress_(containers.progress()),
      element_bytes_(spec.element_bytes),
      state_(std::make_unique<QueueState>(containers, spec)) {}
QueueCore::~QueueCore() = default;
Rank QueueCore::host() const noexcept { return state_->spec.host; }
std::uint64_t QueueCore::size() const noexcept { return state_->size(); }

Status QueueCore::push_at_once(const std::byte* elements, std::uint32_t count,
                               const QueueTerms& terms) noexcept {
  return state_->begin(elements, nullptr, count, terms);
}

Status QueueCore::pop_at_once(std::byte* to, std::uint32_t& count,
                              const QueueTerms& terms) noexcept {
  return state_->begin(nullptr, to, count, terms);
}

remote::Protocol<PoppedElements> QueueCore::push(const std::byte* elements, std::uint32_t count,
                                                 const QueueTerms& terms) {
  return state_->run(elements, count, terms);
}

remote::Protocol<PoppedElements> QueueCore::pop(std::uint32_t most, const QueueTerms& terms) {
  return state_->run(nullptr, most, terms);
}

// --- by message ----------------------------------------------------------------------------------

void QueueState::handle(Rank from, const MessageHead& head, std::span<const std::byte> content) {
  switch (head.kind) {
    case MessageKind::request:
      return handle_request(from, head, content);
    case MessageKind::claim_request:
      if (from != spec.host) return;
      host_waits = true;
      may_take_head = false;
      host_generation = head.call;
      return;
    case MessageKind::claims:
      return handle_claims(from, head, content);
    case MessageKind::reply:
      return;
  }
}

void QueueState::handle_request(Rank from, const MessageHead& head,
                                std::span<const std::byte> content) {
  const std::size_t bytes = spec.element_bytes;
  const bool pushes = head.operation == 0;
  const bool fits = head.word > 0 && head.word <= (kMaxMessageBytes - kMessageHeader) / bytes &&
                    (!pushes || head.word <= spec.capacity);
  const bool valid = works_directly(Promise::both) && head.operation <= 1 && fits &&
                     content.size() == (pushes ? head.word * bytes : 0);
  if (!valid) return hub.send(from, reply_to(head, Status::not_allowed), {});
  ++counters.served;
  auto count = static_cast<std::uint32_t>(head.word);
  std::array<std::byte, kMaxMessageBytes> elements;
  const Status status = pushes ? local_push(site.memory(), content.data(), count)
                               : local_pop(site.memory(), elements.data(), count);
  const bool has_some = !pushes && status == Status::ok;
  hub.send(from, reply_to(head, status == Status::under_way ? Status::busy : status),
           std::span(elements).first(has_some ? count * bytes : 0));
}

}  // namespace dunlin::container
