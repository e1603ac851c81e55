#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/node/engine.hpp>
#include <dunlin/store.hpp>

/// The key-value store of a node, for any thread (store.hpp says what a store is).
///
///     dunlin::StoreHandle store = node.store("blocks", {.copies = 2});
///     store.put("load/rack7", "0.75").get();
///     if (auto value = store.get("load/rack7").get()) use(value->text());
///
/// A future's value is nothing, or false, if the key is absent. Calls fail with `lost` if the key's
/// members have died, with `no_room` and `full` if its member has no room, and with `too_long`.
namespace dunlin {

struct StoreValue {
  std::string bytes = {};
  std::uint64_t version = 0;
  std::uint64_t ttl_ns = kNoExpiry;  // how long the key has to live
  [[nodiscard]] const std::string& text() const noexcept { return bytes; }
};

/// How a change has ended.
struct StoreChange {
  bool changed = false;
  std::uint64_t version = 0;  // that the key has now; 0: it is absent
  explicit operator bool() const noexcept { return changed; }
};

/// A piece of a scan over the keys of all members.
struct StorePiece {
  struct Entry {
    std::string key;
    std::string value;  // if the scan reads values
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
  };
  std::vector<Entry> entries;
  StoreCursor next = 0;  // where the next piece begins; 0: this was the last one
};

class StoreHandle {
 public:
  StoreHandle(std::shared_ptr<node::Engine> engine, const std::string& name, StoreOptions options);

  [[nodiscard]] Future<std::optional<StoreValue>> get(StoreKey key);
  /// Copies the value into the caller's buffer, whose bytes belong to the call until the future is
  /// ready. Returns the size of the value, of which the buffer has what fits.
  [[nodiscard]] Future<std::optional<std::size_t>> get_into(StoreKey key, std::span<std::byte> to);
  Future<StoreChange> put(StoreKey key, std::span<const std::byte> value,
                          std::uint64_t ttl_ns = kNoExpiry);
  Future<StoreChange> put(StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry) {
    return put(key, std::as_bytes(std::span(value)), ttl_ns);
  }
  /// These change the key only if it is absent; present; or has that version (0: is absent).
  Future<StoreChange> insert(StoreKey key, std::string_view value,
                             std::uint64_t ttl_ns = kNoExpiry);
  Future<StoreChange> replace(StoreKey key, std::string_view value,
                              std::uint64_t ttl_ns = kNoExpiry);
  Future<StoreChange> compare_and_set(StoreKey key, std::uint64_t version, std::string_view value,
                                      std::uint64_t ttl_ns = kNoExpiry);
  Future<StoreChange> erase(StoreKey key);
  Future<StoreChange> expire(StoreKey key, std::uint64_t ttl_ns);
  /// Reads the key, asks `updater`, and writes, with no other change of the key in between. The
  /// node's thread, or this one, calls `updater` under the key's lock; it must not use the node. If
  /// it throws, on_exception is told, and the key keeps what it has.
  Future<StoreChange> update(StoreKey key, StoreUpdater updater);
  /// How many keys all members have.
  [[nodiscard]] Future<std::uint64_t> count();
  /// The piece of a scan that begins at the cursor; 0 begins a scan. A key that is there during the
  /// whole scan is in one piece of it exactly once.
  [[nodiscard]] Future<StorePiece> scan(StoreCursor from, ScanOptions options = {});

  /// Reads and changes several keys as one (store/transaction.hpp). The calling thread calls
  /// `function`, again after each conflict, and waits for the gets and the commit.
  ///
  ///     store.transact([](dunlin::StoreHandle::Transaction& t) {
  ///       const int has = std::stoi(t.get("alice").value_or("0"));
  ///       t.put("alice", std::to_string(has - 30));
  ///     });
  ///
  /// While it waits, it calls `while_waiting` every 50 ms. What that or `function` throws ends the
  /// transaction, and nothing of it happens, unless it waits for the commit: then all of it, or
  /// nothing.
  class Transaction;
  Result<void> transact(const std::function<void(Transaction&)>& function,
                        std::uint32_t attempts = 1'000,
                        const std::function<void()>& while_waiting = nullptr);

 private:
  class Object;
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

class StoreHandle::Transaction {
 public:
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  /// Waits for the value; nothing: the key is absent. Throws Error if the get has failed.
  [[nodiscard]] std::optional<std::string> get(StoreKey key);
  void put(StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry);
  /// If the key is there, nothing of the transaction happens: transact() returns `name_taken`.
  void insert(StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry);
  void erase(StoreKey key);
  /// Nothing of the transaction happens: transact() returns `abandoned`.
  void cancel() noexcept { is_cancelled_ = true; }

 private:
  friend class StoreHandle;
  Transaction(node::Engine& engine, Object& object, const std::function<void()>& while_waiting);
  ~Transaction();
  /// Calls `begin` under the lock, and waits for the operation that it returns.
  template <class Begin>
  remote::Status run(const Begin& begin);
  remote::Status commit();
  void clear();

  node::Engine& engine_;
  Object& object_;
  const std::function<void()>& while_waiting_;
  StoreTransaction* transaction_;  // belongs to the object; used under the lock
  bool is_cancelled_ = false;
};

}  // namespace dunlin
