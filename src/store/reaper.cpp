#include "store/reaper.hpp"

#include <algorithm>
#include <cstddef>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Freed;

namespace {

/// A pass takes so many calls of look(): a second.
constexpr std::uint64_t kLooksOfAPass = 100;
constexpr std::uint64_t kLeastStretch = 256;  // main headers
/// While one key in so many that are seen has expired, the next stretch follows at once.
constexpr std::uint64_t kManyExpired = 10;
/// One poll looks at so many chains, and begins so many erasures.
constexpr std::uint64_t kChainsAtOnce = 1024;
constexpr std::size_t kErasuresAtOnce = 256;
/// A member that finds no room is told of so many.
constexpr std::uint64_t kWorthTelling = 64;
/// A hurried pass that has found nothing holds for so long, and for so many times what it took.
constexpr std::uint64_t kFreshNs = 10'000'000;
constexpr std::uint64_t kFreshTimes = 9;
/// An entry of a slot that another member owns is looked at again so much later.
constexpr std::uint64_t kSecondCopyNs = 1'000'000'000;

[[nodiscard]] std::uint64_t load_word(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}

}  // namespace

Reaper::Reaper(State& state) : state_(state), known_(state.main_headers()) {
  head_.reserve(kEntryHeadBytes + kMaxStoreKeyBytes);
}
Reaper::~Reaper() = default;

void Reaper::look() noexcept {
  to_look_ = std::max({to_look_, kLeastStretch, state_.main_headers() / kLooksOfAPass});
}

std::size_t Reaper::poll() {
  const std::uint64_t chains = state_.main_headers();
  if (to_look_ == 0 || chains == 0 || state_.store == nullptr || state_.progress.stopped())
    return 0;
  if (known_.size() < chains) known_.resize(chains);
  const std::uint64_t now = state_.fabric.now_ns();
  begun_ = 0;
  for (std::uint64_t looks = 0; looks < kChainsAtOnce && to_look_ > 0; ++looks) {
    if (begun_ >= kErasuresAtOnce || idle() == nullptr) break;
    look_at_chain(at_++ % chains, now);
    --to_look_;
    if (hurried_ == 0) continue;
    --hurried_;
    if (hurried_ == 0) end_hurry(now);
  }
  if (to_look_ == 0) {
    const bool many = expired_ > 0 && expired_ * kManyExpired >= seen_;
    seen_ = expired_ = 0;
    if (many) look();
  }
  if (to_look_ > 0) state_.look_again_soon();
  return begun_;
}

/// The version is read before the slots: a change that was under way meanwhile raises it later.
void Reaper::look_at_chain(std::uint64_t number, std::uint64_t now) {
  std::byte* const main = state_.own_main(number);
  Known& known = known_[number];
  const std::uint64_t version = load_word(main + kVersionAt);
  if (known.version == version && now < known.expires_at_ns) return;
  std::uint64_t first = UINT64_MAX;
  bool goes_on = true;
  for (const std::byte* const bucket : OwnChain(state_, main))
    for (std::size_t i = 0; i < kSlots; ++i) {
      const std::byte* const slot = bucket + i * kSlotBytes;
      const std::uint64_t word = load_word(slot + kWordBytes);
      if (slot_word::type_of(word) != SlotType::entry) continue;
      const Location location = slot_word::location_of(word);
      const std::byte* const entry = state_.own_entry(location);
      if (entry == nullptr) continue;
      ++seen_;
      // The head alone says whether an entry has expired; the erasing looks closer.
      const std::uint64_t expiry = load_word(entry + offsetof(EntryHead, expiry_ns));
      if (expiry == 0) continue;
      if (expiry > now) {
        first = std::min(first, expiry);
      } else if (!state_.is_owner(load_word(slot))) {
        first = std::min(first, now + kSecondCopyNs);
      } else {
        ++expired_;
        first = 0;
        goes_on = goes_on && reap(entry, block_bytes(location));
      }
    }
  known = {version, first};
}

StoreOperation* Reaper::idle() {
  const auto found = std::ranges::find_if(
      operations_, [](const StoreOperation& operation) { return operation.finished(); });
  return found == operations_.end() ? nullptr : &*found;
}

/// Whether another key of this chain can follow at once.
bool Reaper::reap(const std::byte* entry, std::size_t block_bytes) {
  StoreOperation* const operation = idle();
  if (operation == nullptr) return false;
  memory::fetch(head_.data(), entry, kEntryHeadBytes);
  const EntryHead head = head_of(head_.data());
  if (state_of(head.guard) != EntryState::live || !is_sound(head) ||
      entry_bytes(head) > block_bytes)
    return true;
  memory::fetch(head_.data(), entry, kEntryHeadBytes + head.key_bytes);
  const std::span<const std::byte> key(head_.data() + kEntryHeadBytes, head.key_bytes);
  *operation = state_.begin_change({.kind = Kind::reap}, key, {});
  ++begun_;
  ++erased_;
  return operation->finished();
}

// --- when members find no room -------------------------------------------------------------------

void Reaper::end_hurry(std::uint64_t now) noexcept {
  hurry_ended_at_ns_ = now;
  fresh_until_ns_ = now + std::max(kFreshNs, kFreshTimes * (now - hurried_at_ns_));
}

Freed Reaper::free_blocks() noexcept {
  const std::uint64_t now = state_.fabric.now_ns();
  if (erased_ >= kWorthTelling) {
    erased_ = 0;
    return Freed::some;
  }
  if (hurried_ == 0 && now >= fresh_until_ns_) {
    hurried_ = state_.main_headers();
    hurried_at_ns_ = now;
  }
  to_look_ = std::max(to_look_, hurried_);
  if (hurried_ > 0) return Freed::looking;
  const bool waits = std::any_of(operations_.begin(), operations_.end(),
                                 [](const auto& one) { return !one.finished(); });
  if (waits && now - hurry_ended_at_ns_ < kFreshNs) return Freed::looking;
  if (erased_ == 0) return Freed::nothing;
  erased_ = 0;
  return Freed::some;
}

}  // namespace dunlin::store
