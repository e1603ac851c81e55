#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "container/queue.hpp"
#include "container/small_slot.hpp"
#include "fabric/thread_guard.hpp"

/// A queue at its host; calls where its memory is mapped, as at the host and on shm; and those that
/// come by message.
namespace dunlin::container {

using remote::Status;

namespace {

QueueSpec checked(QueueSpec spec, const Fabric& fabric) {
  check_name("queue", spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error("queue '" + spec.name + "': " + why);
  };
  if (spec.element_bytes == 0 || spec.element_bytes > kMaxElementBytes)
    refuse("an element has 1 to " + std::to_string(kMaxElementBytes) + " bytes (kMaxElementBytes)");
  if (spec.capacity == 0 || spec.capacity > kMaxSlots)
    refuse("its capacity is 1 to " + std::to_string(kMaxSlots) + " (kMaxSlots)");
  if (spec.host >= fabric.size())
    refuse("the group has no member " + std::to_string(spec.host) + ", only 0 to " +
           std::to_string(fabric.size() - 1));
  // Elements that no message holds go one-sided, at every member.
  if (kMessageHeader + spec.element_bytes > kMaxMessageBytes) spec.style = Style::one_sided;
  return spec;
}

std::string layout_of(const QueueSpec& spec) {
  return "queue\nelement " + std::to_string(spec.element_bytes) + "\ncapacity " +
         std::to_string(spec.capacity) + "\nhost " + std::to_string(spec.host) +
         "\nmessages only " + (spec.style == Style::message ? "1" : "0") +
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
      spec(checked(std::move(its_spec), hub.fabric)),
      shape(shape_of(spec.element_bytes)),
      coherent(hub.fabric.properties().atomics_coherent_with_cpu),
      site(hub, "container", spec.name, is_host() ? queue_bytes : kQueueSlots, layout_of(spec)),
      checker(spec.checked ? std::make_unique<Checker>(hub, kQueueCalls, spec.name, site)
                           : nullptr),
      image(shape.slot_bytes),
      nothing(spec.element_bytes),
      answered(hub.progress.size()) {
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

QueueCore::QueueCore(Containers& containers, const QueueSpec& spec)
    : state_(std::make_unique<QueueState>(containers, spec)) {}
QueueCore::~QueueCore() = default;
Containers& QueueCore::containers() const noexcept { return state_->containers; }
std::uint32_t QueueCore::element_bytes() const noexcept { return state_->spec.element_bytes; }
Rank QueueCore::host() const noexcept { return state_->spec.host; }
std::uint64_t QueueCore::size() const noexcept { return state_->size(); }

remote::Call<QueueOutcome> QueueCore::push(const std::byte* elements, std::uint32_t count,
                                           const QueueTerms& terms) {
  QueueState& queue = *state_;
  if (const auto done = queue.begin(elements, nullptr, count, terms))
    return {queue.hub.progress, *done};
  return {queue.hub.progress, queue.run(elements, count, terms)};
}

std::optional<QueueOutcome> QueueCore::pop_at_once(std::byte* to, std::uint32_t most,
                                                   const QueueTerms& terms) noexcept {
  return state_->begin(nullptr, to, most, terms);
}

remote::Protocol<PoppedElements> QueueCore::pop(std::uint32_t most, const QueueTerms& terms) {
  return state_->run(nullptr, most, terms);
}

std::uint64_t QueueState::size() noexcept {
  if (is_host()) saw(memory::load(own_word(kTailOffset)), memory::load(own_word(kHeadOffset)));
  return seen_size();
}

// --- calls in mapped memory ----------------------------------------------------------------------

std::optional<QueueOutcome> QueueState::begin(const std::byte* elements, std::byte* to,
                                              std::uint32_t count,
                                              const QueueTerms& terms) noexcept {
  DUNLIN_ONE_THREAD(&hub.fabric);
  if (count == 0 || hub.progress.was_stopped())
    return QueueOutcome{count == 0 ? Status::ok : Status::stopped};
  if (elements != nullptr && count > spec.capacity) return QueueOutcome{Status::out_of_range};
  if (checker != nullptr) return {};
  const auto done = at_once(elements, to, std::min(count, spec.capacity), terms);
  return done && done->status != Status::ok && terms.wait_ns > 0 ? std::nullopt : done;
}

bool QueueState::works_directly(Promise promise) const noexcept {
  return is_host() && (coherent || spec.style == Style::message || promise == Promise::local);
}

std::byte* QueueState::mapped(const QueueTerms& terms) const noexcept {
  if (is_host()) return works_directly(terms.promise) ? site.memory() : nullptr;
  const bool by_message =
      (terms.style != Style::automatic ? terms.style : spec.style) == Style::message ||
      spec.style == Style::message;
  if (by_message || !coherent) return nullptr;
  const std::span<std::byte> there = hub.fabric.reach(spec.host, site.region());
  return there.size() >= queue_bytes ? there.data() : nullptr;
}

std::optional<QueueOutcome> QueueState::at_once(const std::byte* elements, std::byte* to,
                                                std::uint32_t count,
                                                const QueueTerms& terms) noexcept {
  std::byte* const queue = mapped(terms);
  if (queue == nullptr) return {};
  const auto done =
      elements != nullptr ? local_push(queue, elements, count) : local_pop(queue, to, count);
  if (!done) return {};
  if (done->status == Status::ok || terms.wait_ns == 0)
    ++(is_host() ? counters.local : counters.one_sided);
  if (!is_host() && done->ok()) hub.fabric.ring(spec.host);
  return done;
}

std::optional<QueueOutcome> QueueState::local_push(std::byte* queue, const std::byte* elements,
                                                   std::uint32_t count) noexcept {
  const std::uint64_t tail = memory::load(word_of(queue, kTailOffset));
  const std::uint64_t head = memory::load(word_of(queue, kHeadOffset));
  saw(tail, head);
  if (tail + count > head + spec.capacity) return QueueOutcome{Status::full};
  if (memory::compare_swap(queue + kTailOffset, tail, tail + count) != tail) return {};
  saw(tail + count, head);
  std::byte* slot = queue + offset_of(tail);
  for (std::uint32_t i = 0; i < count; ++i, slot = next(queue, slot)) {
    const std::byte* const element = elements + std::size_t{i} * spec.element_bytes;
    const std::uint64_t stamp = tail + i + 1;
    if (shape.slot_bytes == kSmallSlotBytes) {
      memory::store(word_of_slot(slot, 0), stamp);
      place_small_payload(slot, element, spec.element_bytes, stamp);
    } else {
      encode(shape, element, stamp, image.data());
      memory::place(slot, image.data(), shape.slot_bytes);
    }
  }
  return QueueOutcome{Status::ok, count};
}

std::optional<QueueOutcome> QueueState::local_pop(std::byte* queue, std::byte* to,
                                                  std::uint32_t most) noexcept {
  std::uint64_t head = memory::load(word_of(queue, kHeadOffset));
  std::uint32_t count = 0;
  for (std::byte* slot = queue + offset_of(head); count < most; slot = next(queue, slot)) {
    if (shape.slot_bytes == kSmallSlotBytes) {
      const SmallSlot seen = fetch_small(slot);
      std::memcpy(image.data(), &seen, sizeof seen);
    } else {
      memory::fetch(image.data(), slot, shape.slot_bytes);
    }
    const std::uint64_t stamp = head + count + 1;
    if (!is_whole(shape, image.data())) break;
    if (count == 0 && word_at(image.data()) == (stamp | kSkip)) {
      if (memory::compare_swap(queue + kHeadOffset, head, head + 1) != head) return {};
      ++head;
      continue;
    }
    if (word_at(image.data()) != stamp) break;
    decode(shape, image.data(), 0, spec.element_bytes,
           to + std::size_t{count} * spec.element_bytes);
    ++count;
  }
  if (count == 0) {
    if (memory::load(word_of(queue, kTailOffset)) != head) return {};
    saw(head, head);
    return QueueOutcome{Status::empty};
  }
  if (memory::compare_swap(queue + kHeadOffset, head, head + count) != head) return {};
  saw(head + count, head + count);
  return QueueOutcome{Status::ok, count};
}

// --- by message ----------------------------------------------------------------------------------

void QueueState::handle(Rank from, const MessageHead& head, std::span<const std::byte> content) {
  switch (head.kind) {
    case MessageKind::request:
      return handle_request(from, head, content);
    case MessageKind::claim_request:
      if (from != spec.host) return;
      host_waits = true;
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
  MessageHead reply{.container = head.container, .call = head.call, .kind = MessageKind::reply};
  const bool pushes = head.operation == 0;
  const bool fits = head.word > 0 && head.word <= (kMaxMessageBytes - kMessageHeader) / bytes;
  const bool valid = works_directly(Promise::both) && head.operation <= 1 && fits &&
                     content.size() == (pushes ? head.word * bytes : 0);
  if (!valid) {
    reply.status = static_cast<std::uint8_t>(Status::not_allowed);
    return hub.send(from, reply, {});
  }
  ++counters.served;
  const auto count = static_cast<std::uint32_t>(head.word);
  std::array<std::byte, kMaxMessageBytes> elements;
  const auto done = pushes ? local_push(site.memory(), content.data(), count)
                           : local_pop(site.memory(), elements.data(), count);
  reply.status = static_cast<std::uint8_t>(done ? done->status : Status::busy);
  hub.send(from, reply, std::span(elements).first(pushes || !done ? 0 : done->count * bytes));
}

}  // namespace dunlin::container
