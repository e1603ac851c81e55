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
using node::RecordRing;
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

constexpr auto kValue = [](StoreOperation& operation) -> Result<std::optional<StoreValue>> {
  if (!operation.found()) return std::optional<StoreValue>();
  return std::optional<StoreValue>(StoreValue{.bytes = std::string(operation.text()),
                                              .version = operation.version(),
                                              .ttl_ns = operation.ttl_ns()});
};
constexpr auto kChange = [](StoreOperation& operation) -> Result<StoreChange> {
  return StoreChange{.changed = operation.changed(), .version = operation.version()};
};

}  // namespace

class StoreHandle::Part final : public node::Part {
 public:
  Part(remote::Progress& progress, const StoreOptions& options)
      : who("store '" + options.name + "'"), store_(std::in_place, progress, options) {}
  [[nodiscard]] Store& store() noexcept { return *store_; }
  void end() noexcept override {
    transactions.clear();
    spare.reset();
    store_.reset();
  }
  /// An operation that is not under way.
  [[nodiscard]] std::unique_ptr<StoreOperation> operation() {
    if (spare) return std::move(spare);
    return std::make_unique<StoreOperation>(*store_);
  }

  const std::string who;
  std::unique_ptr<StoreOperation> spare;
  std::vector<std::unique_ptr<StoreTransaction>> transactions;

 private:
  std::optional<Store> store_;
};

namespace {

/// A call under way, or in the queue.
template <class T, class StorePart, class Take>
class PendingOperation final : public node::SharedResult<T> {
 public:
  PendingOperation(Engine& engine, StorePart& part, const char* name, bool borrows, Take take)
      : node::SharedResult<T>(engine, borrows), part_(part), name_(name), take_(std::move(take)) {}
  using node::SharedCall::enter_queue;

  void go_on(std::unique_ptr<StoreOperation> operation) {
    this->link();
    operation_ = std::move(operation);
    operation_->then([this] { take(); });
  }
  template <class Begin>
  void begin(const Begin& begin_it) noexcept {
    if (!this->leave_queue()) return;
    if (!this->engine().is_running()) return this->fail(this->engine().why_stopped());
    try {
      auto operation = part_.operation();
      begin_it(part_.store(), *operation);
      go_on(std::move(operation));
    } catch (const std::exception& error) {
      this->fail({Status::not_allowed, error.what()});
    }
  }
  void fail(Failure failure) noexcept override {
    operation_.reset();
    this->result = std::move(failure);
    this->end();
  }
  [[nodiscard]] static Result<T> result_of(StorePart& part, const char* name,
                                           StoreOperation& operation, const Take& take) {
    if (operation.status() == Status::ok) return take(operation);
    return node::failure_of(part.who, name, operation.status(), "store");
  }

 private:
  void take() noexcept {
    try {
      this->result = result_of(part_, name_, *operation_, take_);
    } catch (const std::exception& error) {
      this->result = Failure{Status::no_memory, error.what()};
    }
    // It ends here, as the thread that drops the future has no turn.
    if (!part_.spare) part_.spare = std::move(operation_);
    operation_.reset();
    this->end();
  }
  StorePart& part_;
  const char* const name_;
  const Take take_;
  std::unique_ptr<StoreOperation> operation_;
};

/// Begins an operation here, if the turn is free, or in the queue: `now(store, operation)` uses the
/// caller's bytes, and the function that `later()` makes has its own.
template <class T, class StorePart, class Now, class Later, class Take>
Future<T> begin(Engine& engine, StorePart& part, const char* name, bool borrows, const Now& now,
                const Later& later, const Take& take) {
  using Pending = PendingOperation<T, StorePart, Take>;
  std::optional<Future<T>> begun;
  const bool has_run = engine.run_now([&] {
    auto operation = part.operation();
    now(part.store(), *operation);
    if (operation->finished()) {
      begun.emplace(Pending::result_of(part, name, *operation, take));
      part.spare = std::move(operation);
      return;
    }
    auto* const pending = new Pending(engine, part, name, borrows, take);
    begun.emplace(pending);
    pending->go_on(std::move(operation));
  });
  if (has_run) {
    if (!begun->ready()) engine.wake_if_asleep();
    return std::move(*begun);
  }
  auto* const pending = new Pending(engine, part, name, borrows, take);
  pending->enter_queue();
  const auto claim =
      engine.enqueue([pending, begin_it = later()]() noexcept { pending->begin(begin_it); });
  if (claim == RecordRing::Claim::ok) return Future<T>(pending);
  pending->release();
  pending->release();
  return Future<T>(engine.refused(claim, name));
}

/// `call(store, operation, key, value)`, for a key and a value.
template <class T, class StorePart, class Call, class Take>
Future<T> begin_on_key(Engine& engine, StorePart& part, const char* name, StoreKey key,
                       std::span<const std::byte> value, const Call& call, const Take& take,
                       bool borrows = false) {
  return begin<T>(
      engine, part, name, borrows,
      [&](Store& store, StoreOperation& operation) { call(store, operation, key, value); },
      [&] {
        return [kept = Kept(key, value), call](Store& store, StoreOperation& operation) {
          call(store, operation, kept.key(), kept.value_bytes);
        };
      },
      take);
}

using Bytes = std::span<const std::byte>;
[[nodiscard]] Bytes bytes(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }

}  // namespace

StoreHandle::StoreHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                         StoreOptions options)
    : engine_(std::move(engine)) {
  options.name = name;
  part_ = engine_->with_turn([&] {
    return engine_->part<Part>("store '" + name + "'", [&] {
      return std::make_shared<Part>(engine_->progress(), options);
    });
  });
}

Future<std::optional<StoreValue>> StoreHandle::get(StoreKey key) {
  return begin_on_key<std::optional<StoreValue>>(
      *engine_, *part_, "get", key, {},
      [](Store& store, StoreOperation& operation, StoreKey k, Bytes) { store.get(operation, k); },
      kValue);
}

Future<std::optional<std::size_t>> StoreHandle::get_into(StoreKey key, std::span<std::byte> to) {
  return begin_on_key<std::optional<std::size_t>>(
      *engine_, *part_, "get", key, {},
      [](Store& store, StoreOperation& operation, StoreKey k, Bytes) { store.get(operation, k); },
      [to](StoreOperation& operation) -> Result<std::optional<std::size_t>> {
        if (!operation.found()) return std::optional<std::size_t>();
        const Bytes value = operation.value();
        if (!to.empty()) std::memcpy(to.data(), value.data(), std::min(to.size(), value.size()));
        return std::optional(value.size());
      },
      true);
}

Future<StoreChange> StoreHandle::put(StoreKey key, Bytes value, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "put", key, value,
      [ttl_ns](Store& store, StoreOperation& operation, StoreKey k, Bytes v) {
        store.put(operation, k, v, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::insert(StoreKey key, std::string_view value,
                                        std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "insert", key, bytes(value),
      [ttl_ns](Store& store, StoreOperation& operation, StoreKey k, Bytes v) {
        store.insert(operation, k, v, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::replace(StoreKey key, std::string_view value,
                                         std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "replace", key, bytes(value),
      [ttl_ns](Store& store, StoreOperation& operation, StoreKey k, Bytes v) {
        store.replace(operation, k, v, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::compare_and_set(StoreKey key, std::uint64_t version,
                                                 std::string_view value, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "compare_and_set", key, bytes(value),
      [=](Store& store, StoreOperation& operation, StoreKey k, Bytes v) {
        store.compare_and_set(operation, k, version, v, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::erase(StoreKey key) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "erase", key, {},
      [](Store& store, StoreOperation& operation, StoreKey k, Bytes) { store.erase(operation, k); },
      kChange);
}
Future<StoreChange> StoreHandle::expire(StoreKey key, std::uint64_t ttl_ns) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "expire", key, {},
      [ttl_ns](Store& store, StoreOperation& operation, StoreKey k, Bytes) {
        store.expire(operation, k, ttl_ns);
      },
      kChange);
}
Future<StoreChange> StoreHandle::update(StoreKey key, StoreUpdater updater) {
  return begin_on_key<StoreChange>(
      *engine_, *part_, "update", key, {},
      [updater](Store& store, StoreOperation& operation, StoreKey k, Bytes) {
        store.update(operation, k, updater);
      },
      kChange);
}

Future<std::uint64_t> StoreHandle::count() {
  return begin_on_key<std::uint64_t>(
      *engine_, *part_, "count", "", {},
      [](Store& store, StoreOperation& operation, StoreKey, Bytes) { store.count(operation); },
      [](StoreOperation& operation) { return Result<std::uint64_t>(operation.keys()); });
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

  /// With the turn.
  template <class StorePart>
  void begin(StorePart& part, StoreCursor from, ScanOptions options) noexcept {
    if (!leave_queue()) return;
    if (!engine().is_running()) return fail(engine().why_stopped());
    link();
    try {
      who_ = &part.who;
      scan_.emplace(part.store(), options);
      scan_->step(from);
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
    end();
  }
  const std::string* who_ = nullptr;
  std::optional<StoreScan> scan_;
};

}  // namespace

Future<StorePiece> StoreHandle::scan(StoreCursor from, ScanOptions options) {
  auto* const pending = new PendingScan(*engine_);
  const auto begin_it = [pending, part = part_.get(), from, options]() noexcept {
    pending->begin(*part, from, options);
  };
  if (engine_->run_now(begin_it)) {
    engine_->wake_if_asleep();
    return Future<StorePiece>(pending);
  }
  pending->enter_queue();
  const auto claim = engine_->enqueue(begin_it);
  if (claim == RecordRing::Claim::ok) return Future<StorePiece>(pending);
  pending->release();  // as the call, which is none
  pending->release();  // as the future, which is none
  return Future<StorePiece>(engine_->refused(claim, "scan"));
}

// --- transactions --------------------------------------------------------------------------------

namespace {

/// Waits for an operation that belongs to a transaction.
class PendingEnd final : public node::SharedResult<Status> {
 public:
  PendingEnd(Engine& engine, remote::InFlight& operation)
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
  remote::InFlight& operation_;
};

}  // namespace

StoreHandle::Transaction::Transaction(Engine& engine, Part& part) : engine_(engine), part_(part) {
  transaction_ = engine.with_turn([&] {
    part.transactions.push_back(std::make_unique<StoreTransaction>(part.store()));
    return part.transactions.back().get();
  });
}

StoreHandle::Transaction::~Transaction() {
  try {
    engine_.with_turn([&] {
      std::erase_if(part_.transactions, [&](const auto& one) { return one.get() == transaction_; });
    });
  } catch (const Error&) {
    // The node has ended, and the transaction with it.
  }
}

template <class Begin>
Status StoreHandle::Transaction::run(const Begin& begin) {
  Future<Status> end = engine_.with_turn([&] {
    auto* const pending = new PendingEnd(engine_, begin());
    Future<Status> future(pending);
    pending->go_on();
    return future;
  });
  engine_.wake_if_asleep();
  return end.get();
}

std::optional<std::string> StoreHandle::Transaction::get(StoreKey key) {
  StoreOperation* read = nullptr;
  const Status status =
      run([&]() -> remote::InFlight& { return *(read = &transaction_->get(key)); });
  if (status != Status::ok) throw Error(node::failure_of(part_.who, "get", status, "store").text);
  return engine_.with_turn(
      [&] { return read->found() ? std::optional(std::string(read->text())) : std::nullopt; });
}

void StoreHandle::Transaction::put(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  engine_.with_turn([&] { transaction_->put(key, value, ttl_ns); });
}
void StoreHandle::Transaction::insert(StoreKey key, std::string_view value, std::uint64_t ttl_ns) {
  engine_.with_turn([&] { transaction_->insert(key, bytes(value), ttl_ns); });
}
void StoreHandle::Transaction::erase(StoreKey key) {
  engine_.with_turn([&] { transaction_->erase(key); });
}
Status StoreHandle::Transaction::commit() {
  return run([&]() -> remote::InFlight& { return transaction_->commit(); });
}
void StoreHandle::Transaction::clear() {
  engine_.with_turn([&] { transaction_->clear(); });
}

Result<void> StoreHandle::transact(const std::function<void(Transaction&)>& function,
                                   std::uint32_t attempts) {
  Status status = Status::conflict;
  try {
    Transaction transaction(*engine_, *part_);
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
  return node::failure_of(part_->who, "transact", status, "store");
}

}  // namespace dunlin
