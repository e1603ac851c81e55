#include "store/key_overlay.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <vector>

#include <dunlin/limits.hpp>

#include "store/session.hpp"

namespace dunlin::app::resp {
namespace {

// How many commands, or bytes of values, pass between two looks at the clock.
constexpr std::uint32_t kRunsALook = 16;
constexpr std::size_t kWorkALook = std::size_t{1} << 16;

}  // namespace

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
    overlay_.work_bytes_ += entry.value.size();
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

std::uint64_t cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

KeyOverlay::KeyOverlay(std::span<TransactionKey> keys, KeyOverlay* outer)
    : end_cpu_ns_(outer == nullptr ? 0 : outer->end_cpu_ns()) {
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

std::uint64_t KeyOverlay::end_cpu_ns() noexcept {
  if (end_cpu_ns_ == 0) end_cpu_ns_ = cpu_ns() + kMaxScriptNs;
  return end_cpu_ns_;
}

/// This clock is a system call, which is dear for a command on a short value.
bool KeyOverlay::is_late() noexcept {
  if (++runs_since_look_ < kRunsALook && work_bytes_ - looked_at_bytes_ < kWorkALook)
    return is_late_;
  runs_since_look_ = 0;
  looked_at_bytes_ = work_bytes_;
  const std::uint64_t end_ns = end_cpu_ns();
  is_late_ = is_late_ || cpu_ns() > end_ns;
  return is_late_;
}

const char* KeyOverlay::exhausted(const std::string& replies) noexcept {
  static_assert(kMaxTransactionWork == std::size_t{64} << 20, "as the error says");
  if (work_bytes_ > kMaxTransactionWork)
    return "ERR the commands of the transaction read and write over 67108864 bytes, which is the "
           "limit: none of them has happened";
  static_assert(kMaxReplyBytes == 8388608, "as the error says");
  if (replies.size() > kMaxReplyBytes)
    return "ERR the replies of the transaction would be over 8388608 bytes, which is the limit: "
           "none of its commands has happened";
  static_assert(kMaxScriptNs == 100'000'000, "as the error says");
  if (is_late())
    return "ERR the commands of the transaction have run for over 100 ms, which is the limit: none "
           "of them has happened";
  return nullptr;
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

const char* KeyOverlay::run(const Command& command, Session& session,
                            std::span<const std::string_view> words, Protocol protocol,
                            std::string& replies) {
  for (const std::string_view word : words) work_bytes_ += word.size();
  const bool is_script = command.key_count_word != 0;
  if (is_script) runs_since_look_ = kRunsALook;  // a script may take all of the time
  Reply reply(replies, protocol);
  run_whole(command, session, words, reply, replies);
  return exhausted(replies);
}

/// A command that does something for each key stops when too much is taken.
void KeyOverlay::run_whole(const Command& command, Session& session,
                           std::span<const std::string_view> words, Reply& reply,
                           const std::string& replies) {
  if (command.shape != Command::Shape::each_key) return run_job(command, session, words, reply);
  session.tally = {};
  if (command.is_array) reply.array(words.size() - 1);
  for (std::size_t i = 1; i < words.size(); i += command.words_of_part) {
    run_job(*command.part, session, words.subspan(i - 1, 1 + command.words_of_part), reply);
    if (exhausted(replies) != nullptr) return;
  }
  if (command.run != nullptr) run_job(command, session, words, reply);
}

void KeyOverlay::run_job(const Command& command, Session& session,
                         std::span<const std::string_view> words, Reply& reply) {
  OverlayCall call(*this);
  Job job;
  job.begin(command, session, words);
  job.call = &call;
  job.outer = this;
  if (command.shape == Command::Shape::one_key) job.order.key = words[command.first_key];
  job.task = command.run(job, reply);
  if (!job.task.done()) call.start(job.order);
  while (!session.conclude(job, reply)) call.start(job.order);
}

}  // namespace dunlin::app::resp
