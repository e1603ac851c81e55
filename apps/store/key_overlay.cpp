#include "store/key_overlay.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <dunlin/limits.hpp>

#include "store/session.hpp"

namespace dunlin::app::resp {

/// A call on the keys of an overlay, which ends at once.
class KeyOverlay::OverlayCall final : public Call {
 public:
  explicit OverlayCall(KeyOverlay& overlay) noexcept : overlay_(overlay) {}

  bool start(const Order& order) override {
    changed_ = found_ = false;
    ending_ = Ending::ok;
    if (order.kind == Order::Kind::transact) {
      transact(order);
      return true;
    }
    const auto entry = overlay_.entries_.find(order.key);
    if (entry == overlay_.entries_.end()) {
      ending_ = Ending::undeclared;
      return true;
    }
    apply(order, entry->second);
    return true;
  }
  void release() override {}

  [[nodiscard]] Ending ending() const override { return ending_; }
  [[nodiscard]] bool found() const override { return found_; }
  [[nodiscard]] bool changed() const override { return changed_; }
  [[nodiscard]] std::string_view value() const override { return value_; }
  [[nodiscard]] std::uint64_t ttl_ns() const override { return ttl_ns_; }
  [[nodiscard]] std::uint64_t version() const override { return 0; }
  [[nodiscard]] std::uint64_t keys() const override { return 0; }
  [[nodiscard]] std::uint64_t cursor() const override { return 0; }
  [[nodiscard]] std::size_t entries() const override { return 0; }
  [[nodiscard]] std::string_view entry_key(std::size_t) const override { return {}; }
  [[nodiscard]] std::string_view entry_value(std::size_t) const override { return {}; }

 private:
  void apply(const Order& order, Entry& entry) {
    found_ = entry.found;
    former_.assign(entry.value);  // a change may take its bytes away
    value_ = former_;
    ttl_ns_ = entry.ttl_ns;
    overlay_.work_bytes_ += entry.value.size() + order.value.size();
    switch (order.kind) {
      case Order::Kind::insert:
        return found_ ? void() : put(entry, order.value, order.ttl_ns);
      case Order::Kind::replace:
        return found_ ? put(entry, order.value, order.ttl_ns) : void();
      case Order::Kind::put:
        return put(entry, order.value, order.ttl_ns);
      case Order::Kind::expire:
        return found_ ? put(entry, former_, order.ttl_ns) : void();
      case Order::Kind::erase:
        return erase(entry);
      case Order::Kind::update:
        return change(entry,
                      order.decide(order.context, found_ ? std::optional(value_) : std::nullopt));
      default:
        return;
    }
  }

  void change(Entry& entry, const Change& change) {
    if (change.action == Change::Action::put) put(entry, change.value, change.ttl_ns);
    if (change.action == Change::Action::erase) erase(entry);
  }

  void put(Entry& entry, std::string_view value, std::uint64_t ttl_ns) {
    overlay_.put(entry, value, ttl_ns);
    changed_ = true;
  }
  void erase(Entry& entry) {
    if (!entry.found) return;
    overlay_.erase(entry);
    changed_ = true;
  }

  /// A command on several keys within the transaction.
  void transact(const Order& order) {
    for (TransactionKey& key : order.keys) {
      const auto entry = overlay_.entries_.find(key.key);
      if (entry == overlay_.entries_.end()) {
        ending_ = Ending::undeclared;
        return;
      }
      overlay_.work_bytes_ += entry->second.value.size();
      key.found = entry->second.found;
      key.value = entry->second.value;
      key.ttl_ns = entry->second.ttl_ns;
      key.change = {};
    }
    if (!order.decide_keys(order.context, order.keys)) return;
    // A new value may be another key's former one.
    std::vector<std::string> values;
    values.reserve(order.keys.size());
    for (const TransactionKey& key : order.keys) values.emplace_back(key.change.value);
    for (std::size_t i = 0; i < order.keys.size(); ++i) {
      Change becomes = order.keys[i].change;
      becomes.value = values[i];
      change(overlay_.entries_.find(order.keys[i].key)->second, becomes);
    }
  }

  KeyOverlay& overlay_;
  Ending ending_ = Ending::ok;
  bool found_ = false;
  bool changed_ = false;
  std::string former_;
  std::string_view value_;
  std::uint64_t ttl_ns_ = kForeverNs;
};

KeyOverlay::KeyOverlay(std::span<TransactionKey> keys) {
  for (TransactionKey& key : keys)
    entries_.emplace(
        key.key, Entry{.key = &key, .found = key.found, .value = key.value, .ttl_ns = key.ttl_ns});
}

void KeyOverlay::put(Entry& entry, std::string_view value, std::uint64_t ttl_ns) {
  entry.own.assign(value);
  entry.value = entry.own;
  if (ttl_ns != kKeepTtl) {
    entry.ttl_ns = ttl_ns;
    entry.ttl_changed = true;
  } else if (!entry.found) {
    entry.ttl_ns = kForeverNs;
  }
  entry.found = entry.changed = true;
}

void KeyOverlay::erase(Entry& entry) noexcept {
  entry.found = false;
  entry.value = {};
  entry.ttl_ns = kForeverNs;
  entry.changed = entry.ttl_changed = true;
}

const char* KeyOverlay::exhausted() const noexcept {
  static_assert(kMaxTransactionWork == std::size_t{64} << 20, "as the error says");
  if (work_bytes_ <= kMaxTransactionWork) return nullptr;
  return "ERR the commands of the transaction read and write over 67108864 bytes, which is the "
         "limit: none of them has happened";
}

bool KeyOverlay::settle() {
  std::size_t changes = 0;
  for (auto& [name, entry] : entries_) {
    Change& change = entry.key->change = {};
    if (!entry.changed) continue;
    if (entry.found) {
      change = {.action = Change::Action::put,
                .value = entry.value,
                .ttl_ns = entry.ttl_changed ? entry.ttl_ns : kKeepTtl};
    } else if (entry.key->found) {
      change.action = Change::Action::erase;
    }
    if (change.action != Change::Action::keep) ++changes;
  }
  return changes <= kMaxTransactionWrites;
}

void KeyOverlay::run(const Command& command, Session& session,
                     std::span<const std::string_view> words, Protocol protocol,
                     std::string& replies) {
  Reply reply(replies, protocol);
  OverlayCall call(*this);
  Job job;
  job.command = &command;
  job.session = &session;
  job.call = &call;
  job.arguments.assign(words.begin(), words.end());
  if (command.shape == Command::Shape::at_once) {
    command.conclude(job, reply);
    return;
  }
  if (command.shape != Command::Shape::each_key) return run_job(job, call, reply);
  session.tally = {};
  if (command.is_array) reply.array(words.size() - 1);
  for (std::size_t i = 1; i < words.size(); i += command.words_of_part) {
    Job part;
    part.command = command.part;
    part.session = &session;
    part.call = &call;
    const auto its_words = words.subspan(i - 1, 1 + command.words_of_part);
    part.arguments.assign(its_words.begin(), its_words.end());
    run_job(part, call, reply);
  }
  if (command.conclude != nullptr) command.conclude(job, reply);
}

void KeyOverlay::run_job(Job& job, OverlayCall& call, Reply& reply) {
  if (job.command->shape == Command::Shape::one_key)
    job.order.key = job.arguments[job.command->first_key];
  job.error = job.command->begin(job);
  if (job.error == nullptr) call.start(job.order);
  while (!job.session->conclude(job, reply)) call.start(job.order);
}

}  // namespace dunlin::app::resp
