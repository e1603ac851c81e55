#include <algorithm>
#include <utility>

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

// --- with an operation of the caller's -----------------------------------------------------------

void Store::get(StoreOperation& operation, StoreKey key) noexcept {
  state_->begin(operation, Kind::get, key, {}, kNoExpiry, 0, nullptr);
}
void Store::put(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                std::uint64_t ttl_ns) noexcept {
  state_->begin(operation, Kind::put, key, value, ttl_ns, 0, nullptr);
}
void Store::insert(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                   std::uint64_t ttl_ns) noexcept {
  state_->begin(operation, Kind::insert, key, value, ttl_ns, 0, nullptr);
}
void Store::replace(StoreOperation& operation, StoreKey key, std::span<const std::byte> value,
                    std::uint64_t ttl_ns) noexcept {
  state_->begin(operation, Kind::replace, key, value, ttl_ns, 0, nullptr);
}
void Store::erase(StoreOperation& operation, StoreKey key) noexcept {
  state_->begin(operation, Kind::erase, key, {}, kNoExpiry, 0, nullptr);
}
void Store::compare_and_set(StoreOperation& operation, StoreKey key, std::uint64_t version,
                            std::span<const std::byte> value, std::uint64_t ttl_ns) noexcept {
  state_->begin(operation, Kind::compare_and_set, key, value, ttl_ns, version, nullptr);
}
void Store::update(StoreOperation& operation, StoreKey key, StoreUpdater updater) noexcept {
  state_->begin(operation, Kind::update, key, {}, kKeepExpiry, 0, std::move(updater));
}
void Store::expire(StoreOperation& operation, StoreKey key, std::uint64_t ttl_ns) noexcept {
  state_->begin(operation, Kind::expire, key, {}, ttl_ns, 0, nullptr);
}

void Store::leave(StoreOperation& operation) noexcept { state_->begin_leave(operation); }
void Store::take_keys(StoreOperation& operation) noexcept { state_->begin_take(operation); }

// --- made where it stays, as it cannot be moved --------------------------------------------------

StoreOperation Store::get(StoreKey key) {
  return {*this, [&](StoreOperation& op) { get(op, key); }};
}
StoreOperation Store::put(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return {*this, [&](StoreOperation& op) { put(op, key, value, ttl_ns); }};
}
StoreOperation Store::put(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  return put(key, std::as_bytes(std::span(value)), ttl_ns);
}
StoreOperation Store::insert(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return {*this, [&](StoreOperation& op) { insert(op, key, value, ttl_ns); }};
}
StoreOperation Store::replace(StoreKey key, std::span<const std::byte> value,
                              std::uint64_t ttl_ns) {
  return {*this, [&](StoreOperation& op) { replace(op, key, value, ttl_ns); }};
}
StoreOperation Store::erase(StoreKey key) {
  return {*this, [&](StoreOperation& op) { erase(op, key); }};
}
StoreOperation Store::compare_and_set(StoreKey key, std::uint64_t version,
                                      std::span<const std::byte> value, std::uint64_t ttl_ns) {
  return {*this, [&](StoreOperation& op) { compare_and_set(op, key, version, value, ttl_ns); }};
}
StoreOperation Store::update(StoreKey key, StoreUpdater updater) {
  return {*this, [&](StoreOperation& op) { update(op, key, std::move(updater)); }};
}
StoreOperation Store::leave() {
  return {*this, [&](StoreOperation& op) { leave(op); }};
}
StoreOperation Store::take_keys() {
  return {*this, [&](StoreOperation& op) { take_keys(op); }};
}
StoreOperation Store::expire(StoreKey key, std::uint64_t ttl_ns) {
  return {*this, [&](StoreOperation& op) { expire(op, key, ttl_ns); }};
}
StoreOperation Store::count() {
  return {*this, [&](StoreOperation& op) { count(op); }};
}
void Store::count(StoreOperation& op) noexcept {
  state_->begin(op, Kind::count, std::uint64_t{0}, {}, kNoExpiry, 0, nullptr);
}

// --- figures -------------------------------------------------------------------------------------

void Store::for_each_local(const std::function<void(const StoreEntry& entry)>& see) const {
  state_->for_each_local(see);
}

Rank Store::home_of(StoreKey key) const noexcept {
  return state_->known_home_of(store::hash_of(key.bytes()));
}

void Store::limit_memory(std::size_t bytes) noexcept { state_->limit_memory(bytes); }
std::size_t Store::memory_limit() const noexcept { return state_->options.limit_bytes; }
Eviction Store::eviction() const noexcept { return state_->options.eviction; }
StoreStatistics Store::statistics() const { return state_->statistics(); }
std::map<std::string, std::uint64_t> Store::counters() const {
  return state_->counters.all.values();
}
const std::string& Store::why_refused() const noexcept { return state_->why_refused; }
std::string Store::describe_moves() const { return state_->describe_moves(); }

// --- batches -------------------------------------------------------------------------------------

StoreOperation& StoreBatch::next() {
  if (used_ == operations_.size()) operations_.push_back(std::make_unique<StoreOperation>(store_));
  return *operations_[used_++];
}
StoreOperation& StoreBatch::get(StoreKey key) {
  StoreOperation& operation = next();
  store_.state_->begin_get_of_batch(operation, key);
  return operation;
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
  const std::uint64_t now = store_.fabric().now_ns();
  for (std::size_t i = 0; i < used_; ++i) {
    const std::uint64_t spent = store_.fabric().now_ns() - now;
    const bool forever = timeout_ns == remote::kForever;
    operations_[i]->wait(forever ? timeout_ns : timeout_ns - std::min(spent, timeout_ns));
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
