#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <dunlin/store/operation.hpp>

namespace dunlin {

namespace store {
class Transactions;
struct TransactionWork;
}  // namespace store

/// A StoreTransaction reads and changes several keys of a Store, at any members, as if nothing else
/// happened meanwhile. The thread that polls the store's fabric uses it.
///
///     dunlin::StoreTransaction transfer(store);
///     do {
///       transfer.clear();
///       auto& from = transfer.get("alice");               // gets are under way at once
///       auto& to = transfer.get("bob");
///       dunlin::remote::wait_all({&from, &to});
///       transfer.put("alice", less(from.value()));        // kept until commit()
///       transfer.put("bob", more(to.value()));
///     } while (transfer.commit().wait() == dunlin::remote::Status::conflict);
///
/// The gets take no locks, and may return values that never existed together; commit() ends with
/// `conflict` then, and changes nothing. Transactions that end with `ok` are strictly serializable
/// among each other and with the calls that change one key (STO-7). A get outside of transactions
/// sees each key before or after a transaction, but may see one key before and another after it.
///
/// How commit() ends: `ok`; `conflict` (call clear(), read again, and try again); `name_taken` (the
/// key of an insert is there); `lost` (all members that hold one of the keys have failed; with two
/// copies, the failure of one of them is a `conflict`); `no_room`,
/// `full` (one has no room); `out_of_range` (over kMaxTransactionWrites, kMaxTransactionReads, or a
/// limit of keys and values); `not_allowed` (the home has no record for this member, as it expects
/// fewer ranks); `stopped`, `timed_out`, `abandoned`. With `ok` all is changed;
/// with `lost`, `stopped`, `timed_out` or `abandoned` all or nothing (STO-8); else nothing.
class StoreTransaction final : public remote::Call<remote::Status> {
 public:
  explicit StoreTransaction(Store& store);
  ~StoreTransaction();

  /// Starts a get, which stays until clear(). If the transaction has put or erased the key already,
  /// the get finds that.
  StoreOperation& get(StoreKey key);
  // These change keys at commit(); key and value are copied. The last call for a key counts.
  void put(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns = kNoExpiry);
  void put(StoreKey key, std::string_view value, std::uint64_t ttl_ns = kNoExpiry) {
    put(key, std::as_bytes(std::span(value)), ttl_ns);
  }
  /// Inserts a key. If the key is there, nothing of the transaction happens.
  void insert(StoreKey key, std::span<const std::byte> value, std::uint64_t ttl_ns = kNoExpiry);
  void erase(StoreKey key);

  /// Starts the commit, once the gets have ended. After it has ended, only clear() makes the
  /// transaction usable again.
  StoreTransaction& commit();
  /// Forgets all gets and changes; abandons gets that are under way.
  void clear();

  /// How many gets, and how many keys to be changed, there are.
  [[nodiscard]] std::size_t gets() const noexcept;
  [[nodiscard]] std::size_t changes() const noexcept;

 private:
  store::Transactions& transactions_;
  std::shared_ptr<store::TransactionWork> work_;
};

/// What the function of run_transaction() decides about its transaction.
enum class TransactionAction : std::uint8_t { commit, cancel };

/// Calls the function with an empty transaction, and commits the changes; repeats both after a
/// `conflict`, at most so many times. Waits, and backs off before it tries again. `abandoned`: the
/// function cancelled. The function waits for its gets, and may see values that never existed
/// together.
remote::Status run_transaction(
    Store& store, const std::function<TransactionAction(StoreTransaction& transaction)>& function,
    std::uint32_t attempts = 1000);

}  // namespace dunlin
