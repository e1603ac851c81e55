#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/store.hpp>

#include "store/state.hpp"

namespace dunlin {

using remote::Status;
using store::Kind;

std::shared_ptr<store::LocationCache> make_location_cache(std::size_t bytes) {
  return std::make_shared<store::LocationCache>(bytes);
}

Store::Store(Fabric& fabric, StoreOptions options) {
  auto own = std::make_unique<remote::Progress>(fabric);
  remote::Progress& progress = *own;
  state_ = std::make_unique<store::State>(std::move(own), progress, std::move(options));
  state_->store = this;
}
Store::Store(remote::Progress& progress, StoreOptions options)
    : state_(std::make_unique<store::State>(nullptr, progress, std::move(options))) {
  state_->store = this;
}
Store::~Store() = default;

remote::Progress& Store::progress() const noexcept { return state_->progress; }

// --- calls ---------------------------------------------------------------------------------------

StoreOperation Store::get(StoreKey key) {
  StoreOperation operation;
  state_->begin_get(operation, key);
  return operation;
}
StoreOperation Store::put(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return state_->begin_change({.kind = Kind::put, .ttl_ns = ttl_ns}, key, value);
}
StoreOperation Store::put(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  return put(key, std::as_bytes(std::span(value)), ttl_ns);
}
StoreOperation Store::insert(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return state_->begin_change({.kind = Kind::insert, .ttl_ns = ttl_ns}, key, value);
}
StoreOperation Store::replace(StoreKey key, std::span<const std::byte> value,
                              std::uint64_t ttl_ns) {
  return state_->begin_change({.kind = Kind::replace, .ttl_ns = ttl_ns}, key, value);
}
StoreOperation Store::erase(StoreKey key) {
  return state_->begin_change({.kind = Kind::erase}, key, {});
}
StoreOperation Store::compare_and_set(StoreKey key, std::uint64_t version,
                                      std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return state_->begin_change({.kind = Kind::compare_and_set, .ttl_ns = ttl_ns, .version = version},
                              key, value);
}
StoreOperation Store::update(StoreKey key, StoreUpdater updater) {
  return state_->begin_change(
      {.kind = Kind::update, .ttl_ns = kKeepExpiry, .updater = std::move(updater)}, key, {});
}
StoreOperation Store::expire(StoreKey key, std::uint64_t ttl_ns) {
  return state_->begin_change({.kind = Kind::expire, .ttl_ns = ttl_ns}, key, {});
}
StoreOperation Store::count() { return state_->begin_count(); }
StoreOperation Store::leave() { return state_->begin_leave(); }
StoreOperation Store::settle() { return state_->begin_settle(); }

// --- by an operation of the caller's -------------------------------------------------------------

void Store::get(StoreOperation& operation, StoreKey key) {
  operation.abandon();
  state_->begin_get(operation, key);
}
void Store::put(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                std::uint64_t ttl_ns) {
  operation.abandon();
  operation = put(key, value, ttl_ns);
}
void Store::insert(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                   std::uint64_t ttl_ns) {
  operation.abandon();
  operation = insert(key, value, ttl_ns);
}
void Store::replace(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                    std::uint64_t ttl_ns) {
  operation.abandon();
  operation = replace(key, value, ttl_ns);
}
void Store::erase(StoreOperation& operation, StoreKey key) {
  operation.abandon();
  operation = erase(key);
}
void Store::compare_and_set(StoreOperation& operation, StoreKey key, std::uint64_t version,
                            std::span<const std::byte> value, std::uint64_t ttl_ns) {
  operation.abandon();
  operation = compare_and_set(key, version, value, ttl_ns);
}
void Store::update(StoreOperation& operation, StoreKey key, StoreUpdater updater) {
  operation.abandon();
  operation = update(key, std::move(updater));
}
void Store::expire(StoreOperation& operation, StoreKey key, std::uint64_t ttl_ns) {
  operation.abandon();
  operation = expire(key, ttl_ns);
}
void Store::leave(StoreOperation& operation) {
  operation.abandon();
  operation = leave();
}
void Store::settle(StoreOperation& operation) {
  operation.abandon();
  operation = settle();
}

// --- figures -------------------------------------------------------------------------------------

void Store::for_each_local(const std::function<void(const StoreEntry& entry)>& see) const {
  state_->for_each_local(see);
}

Rank Store::home_of(StoreKey key) const noexcept {
  return store::route::owner(state_->routes.of(store::hash_of(key.bytes())));
}

void Store::limit_memory(std::size_t bytes) noexcept { state_->limit_memory(bytes); }
std::size_t Store::memory_limit() const noexcept { return state_->options.limit_bytes; }
Eviction Store::eviction() const noexcept { return state_->options.eviction; }
StoreStatistics Store::statistics() const { return state_->statistics(); }
std::map<std::string, std::uint64_t> Store::counters() const {
  return state_->counters.all.values();
}
const std::string& Store::why_refused() const noexcept { return state_->why_refused; }
StorePlacement Store::placement() const { return state_->summarize_map(); }
void Store::set_weight(std::uint32_t weight) {
  if (weight > kMaxStoreWeight)
    throw Error("store '" + state_->options.name + "': a weight is at most " +
                std::to_string(kMaxStoreWeight) + ", not " + std::to_string(weight));
  if (state_->mover != nullptr) state_->placement->set_weight(weight);
}
std::string Store::describe_moves() const { return state_->describe_moves(); }

// --- batches -------------------------------------------------------------------------------------

StoreOperation& StoreBatch::next() {
  if (used_ == operations_.size()) operations_.push_back(std::make_unique<StoreOperation>());
  StoreOperation& operation = *operations_[used_++];
  operation.abandon();
  return operation;
}
StoreOperation& StoreBatch::get(StoreKey key) {
  StoreOperation& operation = next();
  store_.state_->begin_get(operation, key);
  return operation;
}
/// Each get looks ahead twice, so that several of them wait for memory at a time, and no more than
/// a processor can.
void StoreBatch::get_many(std::span<const StoreKey> keys) {
  constexpr std::size_t kAhead = 8;
  std::array<store::KnownKey, 2 * kAhead> known;
  const auto known_of = [&](std::size_t i) -> store::KnownKey& { return known[i % known.size()]; };
  store::State& state = *store_.state_;
  for (std::size_t i = 0; i < keys.size() + 2 * kAhead; ++i) {
    if (i >= 2 * kAhead) state.begin_get(next(), keys[i - 2 * kAhead], known_of(i));
    if (i < keys.size()) known_of(i) = state.ask_for_place(keys[i]);
    if (i >= kAhead && i - kAhead < keys.size()) state.ask_for_entry(known_of(i - kAhead));
  }
}
StoreOperation& StoreBatch::put(StoreKey key, std::span<const std::byte> value,
                                std::uint64_t ttl_ns) {
  StoreOperation& operation = next();
  store_.put(operation, key, value, ttl_ns);
  return operation;
}
StoreOperation& StoreBatch::insert(StoreKey key, std::span<const std::byte> value,
                                   std::uint64_t ttl_ns) {
  StoreOperation& operation = next();
  store_.insert(operation, key, value, ttl_ns);
  return operation;
}
StoreOperation& StoreBatch::erase(StoreKey key) {
  StoreOperation& operation = next();
  store_.erase(operation, key);
  return operation;
}
StoreOperation& StoreBatch::update(StoreKey key, StoreUpdater updater) {
  StoreOperation& operation = next();
  store_.update(operation, key, std::move(updater));
  return operation;
}
bool StoreBatch::finished() const noexcept {
  for (std::size_t i = 0; i < used_; ++i)
    if (!operations_[i]->finished()) return false;
  return true;
}
Status StoreBatch::wait(std::uint64_t timeout_ns) {
  const bool is_limited = timeout_ns != remote::kForever && !finished();
  const std::uint64_t begun_ns = is_limited ? store_.fabric().now_ns() : 0;
  for (std::size_t i = 0; i < used_; ++i) {
    const std::uint64_t spent_ns = is_limited ? store_.fabric().now_ns() - begun_ns : 0;
    operations_[i]->wait(timeout_ns - std::min(spent_ns, timeout_ns));
  }
  for (std::size_t i = 0; i < used_; ++i)
    if (const Status status = operations_[i]->status(); status != Status::ok) return status;
  return Status::ok;
}
void StoreBatch::clear() noexcept {
  for (std::size_t i = 0; i < used_; ++i) operations_[i]->abandon();
  used_ = 0;
}

}  // namespace dunlin
