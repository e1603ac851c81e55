#include "store/store_values.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <span>

#include <fmt/format.h>

#include "store/limits.hpp"

namespace dunlin::app::resp {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class StoreCall final : public Call {
 public:
  StoreCall(Store& store, StoreTransacts& transacts) : store_(store), transacts_(transacts) {}
  ~StoreCall() override { forget_transact(); }

  bool start(const Order& order) override {
    order_ = order;
    status_ = nullptr;
    transact_.reset();
    switch (order.kind) {
      case Order::Kind::count:
        count_ = store_.count();
        return wait_for(count_);
      case Order::Kind::scan:
        if (!scan_)
          scan_ = std::make_unique<StoreScan>(store_, ScanOptions{.values = order.with_values});
        scan_->step(order.cursor);
        return wait_for(*scan_);
      case Order::Kind::transact:
        transact_ = std::make_unique<StoreTransact>(store_);
        transact_->start(order);
        if (transact_->advance()) return true;
        transacts_.push_back({transact_.get(), this});
        return false;
      case Order::Kind::settle:
        store_.settle(operation_);
        return wait_for(operation_);
      default:
        start_operation();
        return wait_for(operation_);
    }
  }

  void release() override {
    operation_ = {};
    count_ = {};
    scan_.reset();
    forget_transact();
    status_ = nullptr;
  }

  [[nodiscard]] Ending ending() const override {
    if (transact_) return transact_->ending();
    if (status_ == nullptr) return Ending::ok;
    const Ending ending = ending_of(status_());
    const bool is_scan = order_.kind == Order::Kind::scan;
    return ending == Ending::out_of_range && is_scan ? Ending::bad_cursor : ending;
  }
  [[nodiscard]] bool found() const override { return operation_.found(); }
  [[nodiscard]] bool changed() const override { return operation_.changed(); }
  [[nodiscard]] std::string_view value() const override { return operation_.text(); }
  [[nodiscard]] std::uint64_t ttl_ns() const override {
    return operation_.ttl_ns() == kNoExpiry ? kForeverNs : operation_.ttl_ns();
  }
  [[nodiscard]] std::uint64_t version() const override { return operation_.version(); }
  [[nodiscard]] std::uint64_t keys() const override { return count_.keys(); }
  [[nodiscard]] std::uint64_t cursor() const override { return scan_ ? scan_->cursor() : 0; }
  [[nodiscard]] std::size_t entries() const override { return scan_ ? scan_->size() : 0; }
  [[nodiscard]] std::string_view entry_key(std::size_t i) const override {
    return text_of((*scan_)[i].key);
  }
  [[nodiscard]] std::string_view entry_value(std::size_t i) const override {
    return text_of((*scan_)[i].value);
  }

 private:
  void forget_transact() noexcept {
    std::erase_if(transacts_, [&](const auto& one) { return one.call == this; });
    transact_.reset();
  }

  template <class Operation>
  bool wait_for(Operation& operation) {
    status_ = [&operation] { return operation.status(); };
    if (operation.finished()) return true;
    operation.then([this] { on_end(*this); });
    return false;
  }

  void start_operation() noexcept {
    const StoreKey key(order_.key);
    const auto value = bytes_of(order_.value);
    const std::uint64_t ttl_ns = expiry_of(order_.ttl_ns);
    switch (order_.kind) {
      case Order::Kind::put:
        return store_.put(operation_, key, value, ttl_ns);
      case Order::Kind::insert:
        return store_.insert(operation_, key, value, ttl_ns);
      case Order::Kind::replace:
        return store_.replace(operation_, key, value, ttl_ns);
      case Order::Kind::erase:
        return store_.erase(operation_, key);
      case Order::Kind::expire:
        return store_.expire(operation_, key, ttl_ns);
      case Order::Kind::update:
        return store_.update(
            operation_, key,
            [this](std::optional<std::span<const std::byte>> current) { return decide(current); });
      default:
        return store_.get(operation_, key);
    }
  }

  StoreUpdate decide(std::optional<std::span<const std::byte>> current) const {
    const Change change =
        order_.decide(order_.context, current ? std::optional(text_of(*current)) : std::nullopt);
    switch (change.action) {
      case Change::Action::put:
        return StoreUpdate::put(bytes_of(change.value), expiry_of(change.ttl_ns));
      case Change::Action::erase:
        return StoreUpdate::erase();
      case Change::Action::keep:
        break;
    }
    return StoreUpdate::keep();
  }

  Store& store_;
  StoreTransacts& transacts_;
  Order order_;
  StoreOperation operation_;
  StoreOperation count_;
  std::unique_ptr<StoreScan> scan_;
  std::unique_ptr<StoreTransact> transact_;
  std::function<remote::Status()> status_;  // of the operation that was started last
};

}  // namespace

std::unique_ptr<Call> StoreValues::make_call() {
  return std::make_unique<StoreCall>(store_, transacts_);
}

/// A transaction that rests is work to be done, so that nobody sleeps meanwhile. The commands of
/// each may take long: what is left after kMaxWorkMs is the first in the next poll.
std::size_t StoreValues::poll() {
  std::size_t done = store_.poll();
  if (options_.directory != nullptr) done += options_.directory->poll();
  options_.on_poll();
  if (store_.why_refused() != why_refused_) [[unlikely]]
    options_.on_refused(why_refused_ = store_.why_refused());
  const std::uint64_t began_ms = transacts_.empty() ? 0 : unix_ms();
  for (std::size_t left = transacts_.size(); left > 0; --left) {
    if (next_ >= transacts_.size()) next_ = 0;
    const UnderWay one = transacts_[next_];
    if (one.transact->advance()) {
      transacts_[next_] = transacts_.back();
      transacts_.pop_back();
      ++done;
      one.call->on_end(*one.call);
    } else {
      done += one.transact->rests() ? 1 : 0;
      ++next_;
    }
    if (left > 1 && unix_ms() - began_ms > kMaxWorkMs) {
      ++done;  // there is more to do
      break;
    }
  }
  if (store_.progress().stopped()) throw Error("store: " + store_.progress().why_stopped());
  return done;
}

std::size_t StoreValues::under_way() const { return store_.progress().in_flight(); }

std::map<std::string, std::string> StoreValues::figures() const {
  const StoreStatistics now = store_.statistics();
  const Fabric& fabric = store_.fabric();
  const auto text = [](std::uint64_t number) { return fmt::format("{}", number); };
  std::map<std::string, std::string> all{
      {"fabric", fabric.description()},
      {"member", text(fabric.rank())},
      {"members", text(fabric.size())},
      {"keys", text(now.keys)},
      {"value_bytes", text(now.value_bytes)},
      {"memory_bytes", text(now.memory_bytes)},
      {"used_bytes", text(now.memory_used)},
      {"held_bytes", text(now.memory_held)},
      {"memory_held_unused", text(now.memory_held - std::min(now.memory_used, now.memory_held))},
      {"used_memory", text(now.memory_used)},
      {"maxmemory", text(store_.memory_limit())},
      {"maxmemory_policy", store_.eviction() == Eviction::none ? "noeviction" : "allkeys-lru"},
      {"evicted_keys", text(now.evictions)},
      {"copies_complete", now.copies_complete ? "1" : "0"},
      {"occupancy", fmt::format("{:.3f}", now.occupancy())}};
  for (const auto& [name, value] : store_.counters()) all.emplace(name, text(value));
  all["expired_keys"] = all.at("expired");  // the name that Redis has for it
  return all;
}

MemoryLimit StoreValues::memory_limit() const {
  return {.bytes = store_.memory_limit(), .evicts = store_.eviction() != Eviction::none};
}
void StoreValues::limit_memory(std::uint64_t bytes) { store_.limit_memory(bytes); }

std::vector<ServedAt> StoreValues::servers() const {
  return options_.directory == nullptr ? std::vector<ServedAt>{} : options_.directory->servers();
}

/// A member that hands all keys to others needs as many others as each key has copies. If two begin
/// at the same time, the map lets one of them.
const char* StoreValues::hold_keys(bool holds) {
  if (options_.weight == 0 && holds)
    return "ERR this member contributes no memory, so it holds no keys: start one without "
           "--no-keys";
  if (options_.weight == 0) return nullptr;
  if (!holds) {
    const StorePlacement now = store_.placement();
    const auto others = std::ranges::count_if(
        now.members, [&](const auto& one) { return one.weight > 0 && one.rank != self(); });
    if (static_cast<std::uint32_t>(others) < options_.copies)
      return "ERR there are fewer other members that hold keys than each key has copies: let one "
             "join, by dunlin store serve --join, before this one hands its keys over";
  }
  store_.set_weight(holds ? options_.weight : 0);
  return nullptr;
}

std::uint64_t StoreValues::unix_ns() const {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace dunlin::app::resp
