#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "store/key_values.hpp"

namespace dunlin::test {

using app::resp::Call;
using app::resp::Change;
using app::resp::Ending;
using app::resp::KeyValues;
using app::resp::MemoryLimit;
using app::resp::Order;

/// A map in place of the store, with a clock that the test sets. Calls end at once, or, if they are
/// delayed, some in each poll(), in an order drawn from a seed.
class FakeValues final : public KeyValues {
 public:
  struct Entry {
    std::string value;
    std::optional<std::uint64_t> end_ns;
    std::uint64_t version = 0;
  };

  std::map<std::string, Entry> entries;
  std::uint64_t now_ns = 0;
  std::uint64_t call_ns = 0;  // that each call takes
  MemoryLimit limit;
  Ending next_ending = Ending::ok;  // of all calls from now on
  // Keys that a scan finds lost, as places among all: the first, and the one behind the last.
  std::pair<std::uint64_t, std::uint64_t> lost{0, 0};
  Rank rank = 0;
  std::uint32_t copies_of_a_key = 1;
  StorePlacement where_keys_are;
  std::vector<app::resp::ServedAt> all_servers;
  bool holds_keys = true;
  const char* why_not = nullptr;  // hold_keys() returns it
  std::size_t most_under_way = 0;
  std::uint64_t started = 0;
  std::uint64_t last_version = 0;

  void delay(std::uint64_t seed) {
    random_.seed(seed);
    delayed_ = true;
  }

  std::unique_ptr<Call> make_call() override { return std::make_unique<FakeCall>(*this); }

  std::size_t poll() override {
    if (under_way_.empty()) return 0;
    const std::size_t i = random_() % under_way_.size();
    FakeCall* const call = under_way_[i];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
    call->take_effect();
    call->on_end(*call);
    return 1;
  }
  [[nodiscard]] std::size_t under_way() const override { return under_way_.size(); }
  [[nodiscard]] Waits waits() const override { return {}; }
  [[nodiscard]] std::map<std::string, std::string> figures() const override {
    return {{"keys", std::to_string(entries.size())}};
  }
  [[nodiscard]] MemoryLimit memory_limit() const override { return limit; }
  void limit_memory(std::uint64_t bytes) override { limit.bytes = bytes; }
  [[nodiscard]] Rank self() const override { return rank; }
  [[nodiscard]] std::uint32_t copies() const override { return copies_of_a_key; }
  [[nodiscard]] StorePlacement placement() const override { return where_keys_are; }
  [[nodiscard]] std::vector<app::resp::ServedAt> servers() const override { return all_servers; }
  [[nodiscard]] const char* hold_keys(bool holds) override {
    if (why_not == nullptr) holds_keys = holds;
    return why_not;
  }
  [[nodiscard]] std::uint64_t unix_ns() const override { return now_ns; }

 private:
  class FakeCall final : public Call {
   public:
    explicit FakeCall(FakeValues& values) : values_(values) {}
    ~FakeCall() override { std::erase(values_.under_way_, this); }

    bool start(const Order& order) override {
      order_ = order;
      ++values_.started;
      if (!values_.delayed_) {
        take_effect();
        return true;
      }
      values_.under_way_.push_back(this);
      values_.most_under_way = std::max(values_.most_under_way, values_.under_way_.size());
      return false;
    }
    void release() override {
      std::erase(values_.under_way_, this);
      value_.clear();
      keys_.clear();
      found_ = changed_ = false;
    }
    void take_effect();

    [[nodiscard]] Ending ending() const override { return ending_; }
    [[nodiscard]] bool found() const override { return found_; }
    [[nodiscard]] bool changed() const override { return changed_; }
    [[nodiscard]] std::string_view value() const override { return value_; }
    [[nodiscard]] std::uint64_t ttl_ns() const override { return ttl_ns_; }
    [[nodiscard]] std::uint64_t version() const override { return version_; }
    [[nodiscard]] std::uint64_t keys() const override { return values_.entries.size(); }
    [[nodiscard]] std::uint64_t cursor() const override { return cursor_; }
    [[nodiscard]] std::size_t entries() const override { return keys_.size(); }
    [[nodiscard]] std::string_view entry_key(std::size_t i) const override { return keys_[i]; }
    [[nodiscard]] std::string_view entry_value(std::size_t i) const override {
      return values_.entries[keys_[i]].value;
    }

   private:
    void write(const std::string& key, std::string_view value, std::uint64_t ttl_ns);
    void scan();
    void transact();
    /// What is at the key now; null if it is absent, or has ended.
    Entry* find(const std::string& key);

    FakeValues& values_;
    Order order_;
    Ending ending_ = Ending::ok;
    bool found_ = false;
    bool changed_ = false;
    std::string value_;
    std::uint64_t ttl_ns_ = app::resp::kForeverNs;
    std::uint64_t version_ = 0;
    std::uint64_t cursor_ = 0;
    std::vector<std::string> keys_;
  };

  std::mt19937_64 random_;
  bool delayed_ = false;
  std::vector<FakeCall*> under_way_;
};

inline void FakeValues::FakeCall::take_effect() {
  values_.now_ns += values_.call_ns;
  ending_ = values_.next_ending;
  found_ = changed_ = false;
  if (ending_ != Ending::ok) return;
  if (order_.kind == Order::Kind::scan) return scan();
  if (order_.kind == Order::Kind::count || order_.kind == Order::Kind::settle) return;
  if (order_.kind == Order::Kind::transact) return transact();
  auto& entries = values_.entries;
  const std::string key(order_.key);
  const Entry* const found = find(key);
  found_ = found != nullptr;
  value_ = found_ ? found->value : "";
  version_ = found_ ? found->version : 0;
  ttl_ns_ = found_ && found->end_ns ? *found->end_ns - values_.now_ns : app::resp::kForeverNs;
  switch (order_.kind) {
    case Order::Kind::insert:
      if (found_) return;
      return write(key, order_.value, order_.ttl_ns);
    case Order::Kind::replace:
      if (!found_) return;
      return write(key, order_.value, order_.ttl_ns);
    case Order::Kind::put:
      return write(key, order_.value, order_.ttl_ns);
    case Order::Kind::expire:
      if (found_) write(key, value_, order_.ttl_ns);
      return;
    case Order::Kind::erase:
      changed_ = entries.erase(key) > 0;
      return;
    case Order::Kind::update: {
      const auto current = found_ ? std::optional<std::string_view>(value_) : std::nullopt;
      static_cast<void>(order_.decide(order_.context, current));  // it may be asked twice
      const Change change = order_.decide(order_.context, current);
      if (change.action == Change::Action::put) write(key, change.value, change.ttl_ns);
      if (change.action == Change::Action::erase) changed_ = entries.erase(key) > 0;
      return;
    }
    default:
      return;
  }
}

inline FakeValues::Entry* FakeValues::FakeCall::find(const std::string& key) {
  const auto found = values_.entries.find(key);
  if (found == values_.entries.end()) return nullptr;
  if (found->second.end_ns.value_or(UINT64_MAX) > values_.now_ns) return &found->second;
  values_.entries.erase(found);
  return nullptr;
}

inline void FakeValues::FakeCall::transact() {
  for (app::resp::TransactionKey& key : order_.keys) {
    const Entry* const entry = find(std::string(key.key));
    const bool found = entry != nullptr;
    key = {
        .key = key.key,
        .found = found,
        .value = found ? std::string_view(entry->value) : std::string_view(),
        .ttl_ns = found && entry->end_ns ? *entry->end_ns - values_.now_ns : app::resp::kForeverNs,
        .version = found ? entry->version : 0};
  }
  const std::vector<app::resp::TransactionKey> before(order_.keys.begin(), order_.keys.end());
  static_cast<void>(order_.decide_keys(order_.context, order_.keys));  // it may be asked twice
  std::ranges::copy(before, order_.keys.begin());
  if (!order_.decide_keys(order_.context, order_.keys)) return;
  std::vector<std::pair<std::string, std::string>> puts;  // a value may be another key's
  for (const app::resp::TransactionKey& key : order_.keys)
    puts.emplace_back(key.key, key.change.value);
  for (std::size_t i = 0; i < puts.size(); ++i) {
    const Change& change = order_.keys[i].change;
    if (change.action == Change::Action::put) write(puts[i].first, puts[i].second, change.ttl_ns);
    if (change.action == Change::Action::erase) values_.entries.erase(puts[i].first);
  }
}

inline void FakeValues::FakeCall::write(const std::string& key, std::string_view value,
                                        std::uint64_t ttl_ns) {
  Entry& entry = values_.entries[key];
  entry.value = std::string(value);
  entry.version = ++values_.last_version;
  if (ttl_ns != app::resp::kKeepTtl)
    entry.end_ns =
        ttl_ns == app::resp::kForeverNs ? std::nullopt : std::optional(values_.now_ns + ttl_ns);
  changed_ = true;
}

/// Three keys a step; the cursor is how many are behind it.
inline void FakeValues::FakeCall::scan() {
  if (values_.lost.first <= order_.cursor && order_.cursor < values_.lost.second) {
    ending_ = Ending::lost;  // with the keys of the step before, which the session must not look at
    cursor_ = values_.lost.second < values_.entries.size() ? values_.lost.second : 0;
    return;
  }
  keys_.clear();
  std::uint64_t place = 0;
  for (const auto& [key, entry] : values_.entries)
    if (place++ >= order_.cursor && keys_.size() < 3) keys_.push_back(key);
  const std::uint64_t behind = order_.cursor + keys_.size();
  cursor_ = behind < values_.entries.size() ? behind : 0;
}

}  // namespace dunlin::test
