#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <sched.h>

#include <dunlin/node/calls.hpp>
#include <dunlin/node/store.hpp>

namespace dunlin {
namespace {

using node::Engine;
using remote::Status;

/// A key and a value of a call that waits in the queue.
struct Kept {
  Kept(StoreKey key, std::span<const std::byte> value)
      : key_bytes(key.bytes().begin(), key.bytes().end()),
        value_bytes(value.begin(), value.end()) {}
  [[nodiscard]] StoreKey key() const noexcept { return std::span<const std::byte>(key_bytes); }
  std::vector<std::byte> key_bytes;
  std::vector<std::byte> value_bytes;
};

constexpr auto kValue = [](const store::CallResult& got) -> std::optional<StoreValue> {
  if (!got.found) return std::nullopt;
  return StoreValue{
      .bytes = std::string(reinterpret_cast<const char*>(got.value.data()), got.value.size()),
      .version = got.version,
      .ttl_ns = got.ttl_ns};
};
constexpr auto kChange = [](const store::CallResult& change) {
  return StoreChange{.changed = change.changed, .version = change.version};
};

}  // namespace

class StoreHandle::Object final : public node::NodeObject {
 public:
  Object(remote::Progress& progress, const StoreOptions& options)
      : who("store '" + options.name + "'"), store_(std::in_place, progress, options) {}
  [[nodiscard]] Store& store() noexcept { return *store_; }
  void end() noexcept override {
    transactions.clear();
    store_.reset();
  }

  const std::string who;
  std::vector<std::unique_ptr<StoreTransaction>> transactions;

 private:
  std::optional<Store> store_;
};

namespace {

using Bytes = std::span<const std::byte>;
[[nodiscard]] Bytes bytes(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }

/// `call(store, key, value)` begins the operation; `take(result)` makes the value of the future.
template <class T, class StoreObject, class Call, class Take>
Future<T> begin_on_key(Engine& engine, StoreObject& object, const char* name, StoreKey key,
                       Bytes value, const Call& call, const Take& take, bool borrows = false) {
  return node::begin_call<T>(
      engine, name, borrows, [&] { return call(object.store(), key, value); },
      [&] {
        return [&object, kept = Kept(key, value), call] {
          return call(object.store(), kept.key(), kept.value_bytes);
        };
      },
      [&object, name, take](const store::CallResult& result) -> Result<T> {
        if (result.status == Status::ok) return take(result);
        return node::failure_of(object.who, name, result.status, "store");
      });
}

}  // namespace

StoreHandle::StoreHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                         StoreOptions options)
    : engine_(std::move(engine)) {
  options.name = name;
  object_ = engine_->with_lock([&] {
    return engine_->object<Object>("store '" + name + "'", [&] {
      return std::make_shared<Object>(engine_->progress(), options);
    });
  });
}

Future<std::optional<StoreValue>> StoreHandle::get(StoreKey key) {
  return begin_on_key<std::optional<StoreValue>>(
      *engine_, *object_, "get", key, {},
      [](Store& store, StoreKey k, Bytes) { return store.get(k); }, kValue);
}

Future<std::optional<std::size_t>> StoreHandle::get_into(StoreKey key, std::span<std::byte> to) {
  return begin_on_key<std::optional<std::size_t>>(
      *engine_, *object_, "get", key, {},
      [](Store& store, StoreKey k, Bytes) { return store.get(k); },
      [to](const store::CallResult& got) -> std::optional<std::size_t> {
        if (!got.found) return std::nullopt;
        if (!to.empty())
          std::memcpy(to.data(), got.value.data(), std::min(to.size(), got.value.size()));
        return got.value.size();
      },
      true);
}

Future<StoreChange> StoreHandle::put(StoreKey key, Bytes value, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "put", key, value,
      [ttl_ns](Store& store, StoreKey k, Bytes v) { return store.put(k, v, ttl_ns); }, kChange);
}
Future<StoreChange> StoreHandle::insert(StoreKey key, std::string_view value,
                                        std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "insert", key, bytes(value),
      [ttl_ns](Store& store, StoreKey k, Bytes v) { return store.insert(k, v, ttl_ns); }, kChange);
}
Future<StoreChange> StoreHandle::replace(StoreKey key, std::string_view value,
                                         std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "replace", key, bytes(value),
      [ttl_ns](Store& store, StoreKey k, Bytes v) { return store.replace(k, v, ttl_ns); }, kChange);
}
Future<StoreChange> StoreHandle::compare_and_set(StoreKey key, std::uint64_t version,
                                                 std::string_view value, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "compare_and_set", key, bytes(value),
      [=](Store& store, StoreKey k, Bytes v) {
        return store.compare_and_set(k, version, v, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::erase(StoreKey key) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "erase", key, {},
      [](Store& store, StoreKey k, Bytes) { return store.erase(k); }, kChange);
}
Future<StoreChange> StoreHandle::expire(StoreKey key, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "expire", key, {},
      [ttl_ns](Store& store, StoreKey k, Bytes) { return store.expire(k, ttl_ns); }, kChange);
}
Future<StoreChange> StoreHandle::update(StoreKey key, StoreUpdater updater) {
  return begin_on_key<StoreChange>(
      *engine_, *object_, "update", key, {},
      [updater, engine = engine_.get()](Store& store, StoreKey k, Bytes) {
        return store.update(k, [updater, engine](const auto&... found) {
          try {
            return updater(found...);
          } catch (...) {  // the key keeps what it has
            engine->call_back([] { throw; });
            return StoreUpdate::keep();
          }
        });
      },
      kChange);
}

Future<std::uint64_t> StoreHandle::count() {
  return begin_on_key<std::uint64_t>(
      *engine_, *object_, "count", "", {},
      [](Store& store, StoreKey, Bytes) { return store.count(); },
      [](const store::CallResult& counted) { return counted.keys; });
}

// --- scans ---------------------------------------------------------------------------------------

namespace {

[[nodiscard]] std::string text_of(Bytes some) {
  return {reinterpret_cast<const char*>(some.data()), some.size()};
}

class PendingScan final : public node::SharedResult<StorePiece> {
 public:
  explicit PendingScan(Engine& engine) : node::SharedResult<StorePiece>(engine, false) {}
  using node::SharedCall::enter_queue;

  /// Under the lock.
  template <class StoreObject>
  void begin(StoreObject& object, StoreCursor from, ScanOptions options) noexcept {
    if (!leave_queue()) return;
    if (!engine().is_running()) return fail(engine().why_stopped());
    link();
    try {
      who_ = &object.who;
      scan_.emplace(object.store(), options);
      scan_->step(from);
      if (scan_->finished()) return take();
      scan_->then([this] { take(); });
    } catch (const std::exception& error) {
      fail({Status::no_memory, error.what()});
    }
  }
  void fail(Failure failure) noexcept override {
    scan_.reset();
    result = std::move(failure);
    end();
  }

 private:
  void take() noexcept {
    try {
      if (scan_->status() == Status::ok) {
        StorePiece piece{.entries = {}, .next = scan_->cursor()};
        for (std::size_t i = 0; i < scan_->size(); ++i) {
          const StoreEntry entry = (*scan_)[i];
          piece.entries.push_back(
              {text_of(entry.key), text_of(entry.value), entry.version, entry.ttl_ns});
        }
        result = std::move(piece);
      } else {
        result = node::failure_of(*who_, "scan", scan_->status(), "store");
      }
    } catch (const std::exception& error) {
      result = Failure{Status::no_memory, error.what()};
    }
    scan_.reset();  // it ends here, as the thread that drops the future does not hold the lock
    end();
  }
  const std::string* who_ = nullptr;
  std::optional<StoreScan> scan_;
};

}  // namespace

Future<StorePiece> StoreHandle::scan(StoreCursor from, ScanOptions options) {
  auto* const pending = new PendingScan(*engine_);
  const auto begin_it = [pending, object = object_.get(), from, options]() noexcept {
    pending->begin(*object, from, options);
  };
  if (engine_->run_now(begin_it)) {
    engine_->wake_if_asleep();
    return Future<StorePiece>(pending);
  }
  pending->enter_queue();
  const auto claim = engine_->enqueue(begin_it);
  if (claim == node::RecordRing::Claim::ok) return Future<StorePiece>(pending);
  pending->release();  // as the call, which is none
  pending->release();  // as the future, which is none
  return Future<StorePiece>(engine_->number(), engine_->refused(claim, "scan"));
}

// --- transactions --------------------------------------------------------------------------------

namespace {

/// A transaction that waits calls `while_waiting` at these intervals.
constexpr std::uint64_t kWaitSliceNs = 50'000'000;

/// Waits for an operation that belongs to a transaction.
template <class Operation>
class PendingEnd final : public node::SharedResult<Status> {
 public:
  PendingEnd(Engine& engine, Operation& operation)
      : node::SharedResult<Status>(engine, true), operation_(operation) {}
  void go_on() {
    link();
    operation_.then([this] {
      result = operation_.status();
      end();
    });
  }
  void fail(Failure failure) noexcept override {
    operation_.abandon();
    result = std::move(failure);
    end();
  }

 private:
  Operation& operation_;
};

}  // namespace

StoreHandle::Transaction::Transaction(Engine& engine, Object& object,
                                      const std::function<void()>& while_waiting)
    : engine_(engine), object_(object), while_waiting_(while_waiting) {
  transaction_ = engine.with_lock([&] {
    object.transactions.push_back(std::make_unique<StoreTransaction>(object.store()));
    return object.transactions.back().get();
  });
}

StoreHandle::Transaction::~Transaction() {
  try {
    engine_.with_lock([&] {
      std::erase_if(object_.transactions,
                    [&](const auto& one) { return one.get() == transaction_; });
    });
  } catch (const Error&) {
    // The node has ended, and the transaction with it.
  }
}

template <class Begin>
Status StoreHandle::Transaction::run(const Begin& begin) {
  Future<Status> end = engine_.with_lock([&] {
    auto& operation = begin();
    auto* const pending = new PendingEnd(engine_, operation);
    Future<Status> future(pending);
    pending->go_on();
    return future;
  });
  engine_.wake_if_asleep();
  if (while_waiting_)
    while (!end.wait_for(kWaitSliceNs)) while_waiting_();  // if it throws, `end` gives the call up
  return end.get();
}

std::optional<std::string> StoreHandle::Transaction::get(StoreKey key) {
  StoreOperation* read = nullptr;
  const Status status = run([&]() -> StoreOperation& { return *(read = &transaction_->get(key)); });
  if (status != Status::ok) throw Error(node::failure_of(object_.who, "get", status, "store").text);
  return engine_.with_lock(
      [&] { return read->found() ? std::optional(std::string(read->text())) : std::nullopt; });
}

void StoreHandle::Transaction::put(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  engine_.with_lock([&] { transaction_->put(key, value, ttl_ns); });
}
void StoreHandle::Transaction::insert(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  engine_.with_lock([&] { transaction_->insert(key, bytes(value), ttl_ns); });
}
void StoreHandle::Transaction::erase(StoreKey key) {
  engine_.with_lock([&] { transaction_->erase(key); });
}
Status StoreHandle::Transaction::commit() {
  return run([&]() -> StoreTransaction& { return transaction_->commit(); });
}
void StoreHandle::Transaction::clear() {
  engine_.with_lock([&] { transaction_->clear(); });
}

Result<void> StoreHandle::transact(const std::function<void(Transaction&)>& function,
                                   std::uint32_t attempts,
                                   const std::function<void()>& while_waiting) {
  Status status = Status::conflict;
  try {
    Transaction transaction(*engine_, *object_, while_waiting);
    for (std::uint32_t attempt = 0; attempt < attempts && status == Status::conflict; ++attempt) {
      if (attempt > 0) {
        transaction.clear();
        sched_yield();  // the one that has changed the keys may need this processor
      }
      function(transaction);
      status = transaction.is_cancelled_ ? Status::abandoned : transaction.commit();
    }
  } catch (const Error&) {
    if (engine_->is_running()) throw;
    return engine_->why_stopped();
  }
  if (status == Status::ok) return {};
  return node::failure_of(object_->who, "transact", status, "store");
}

}  // namespace dunlin
