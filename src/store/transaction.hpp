#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>
#include <dunlin/store/transaction.hpp>

#include "store/call.hpp"
#include "store/change.hpp"
#include "store/format.hpp"
#include "store/held_chain.hpp"

/// The state and buffers of a transaction. It belongs to the store, so that a commit whose caller
/// has given it up can be completed.
namespace dunlin::store {

enum class TransactionStage : std::uint8_t {
  gets,       // those of the transaction are under way
  room,       // allocates the blocks of entries, and of headers for which it has waited before
  record,     // takes one of this process's records
  hold,       // locks the chains of the keys to be changed, in one order, and finds the keys there
  validate,   // reads version and lock of the other chains
  validated,  //
  plan,       // which slot each key gets
  headers,    // allocates the indirect headers of chains that grow
  prepare,    // posts entries and records
  prepared,   //
  decide,     // posts the mark in the record of the first home
  decided,    //
  in_doubt,   // that home has failed; waits until the members have agreed on it
  apply,      // posts the slots, and gives the locks back; with copies, not yet where it decided
  applied_elsewhere,
  apply_at_decider,
  applied,    //
  roll_back,  // waits until nothing reads the sources of what was posted
  done
};

/// A key that is to change.
struct TransactionWrite {
  Kind kind = Kind::put;  // put, insert, erase
  bool too_long = false;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t hash = 0;
  Rank home = 0;
  std::size_t key_bytes = 0;
  std::size_t value_bytes = 0;
  std::array<std::byte, kMaxStoreKeyBytes> key{};
  Image entry;                 // as it is to be
  std::vector<Place> vacants;  // slots of the chain
  std::optional<Lookup> at;
  std::optional<HeldChain> lock;
  remote::Call<remote::Status> hold;
  bool begun = false;  // hold

  TransactionWrite* first = nullptr;  // of a second copy: the write at the key's first home
  TransactionWrite* copy = nullptr;   // of that one: the write at the second home
  std::uint64_t expiry_ns = 0;        // by the home's clock

  std::size_t chain = 0;
  bool has_block = false;
  bool is_linked = false;  // its entry has been posted
  bool is_large = false;
  std::size_t asked_for = SIZE_MAX;
  remote::SlabBlock block;
  Place slot;                     // that it has, or gets
  std::size_t bucket = SIZE_MAX;  // or the new bucket
  std::size_t bucket_slot = 0;
  std::uint64_t new_guard = 0;  // of the former entry
  Slot new_slot;

  [[nodiscard]] std::span<const std::byte> key_span() const noexcept {
    return {key.data(), key_bytes};
  }
  [[nodiscard]] bool puts() const noexcept { return kind != Kind::erase; }
  /// Gives the lock of the chain back, if it is held.
  void forget_chain() noexcept;
};

/// A chain that is locked; those of one home are neighbours.
struct TransactionChain {
  Rank home = 0;
  Place main;
  std::uint64_t seen_version = 0;
  std::uint64_t next_version = 0;  // of the keys whose first home it is
  bool changes = false;
  std::array<std::uint64_t, 2> unlock{};  // version, lock
  std::size_t vacants_taken = 0;
  std::size_t last_bucket = SIZE_MAX;  // new one
};

/// An indirect header that a chain gets.
struct TransactionBucket {
  std::size_t chain = 0;
  Place link;                     // that will lead to it, unless `before` does
  std::size_t before = SIZE_MAX;  // the new bucket whose link leads to it
  bool has_block = false;
  bool is_linked = false;
  std::size_t asked_for = SIZE_MAX;
  remote::SlabBlock block;
  std::size_t used = 0;
  std::uint64_t word = 0;
  Bucket image;
};

/// A block for an indirect header, allocated before the chain is locked.
struct TransactionHeader {
  Rank home = 0;
  bool has_block = false;
  std::size_t asked_for = SIZE_MAX;
  remote::SlabBlock block;
};

/// The part of one home.
struct TransactionShare {
  Rank home = 0;
  std::vector<Operation> prepare;
  std::vector<Operation> apply;
  std::size_t posted = 0;
  bool is_lost = false;
  std::uint64_t prepared_word = 0;
  std::uint64_t committed_word = 0;
  std::uint64_t keys_added = 0;
  std::uint64_t bytes_added = 0;
  Image record;
  std::size_t record_bytes = 0;
  Completion done;
};

struct TransactionRead {
  std::unique_ptr<StoreOperation> operation;
  SeenChain seen;
  bool is_own = false;  // of a key that the transaction had changed itself
  bool to_validate = false;
  alignas(16) std::array<std::uint64_t, 2> words{};  // version, lock
};

struct TransactionWork {
  static constexpr std::size_t kNoRecord = SIZE_MAX;

  TransactionStage stage = TransactionStage::done;
  remote::Status beyond = remote::Status::ok;  // what has a limit
  bool awaits_death = false;  // a home has failed, and another one will have its keys
  remote::Status end_status = remote::Status::ok;
  std::vector<std::unique_ptr<TransactionRead>> reads;
  std::vector<std::unique_ptr<TransactionWrite>> writes;
  std::size_t used_reads = 0;
  std::size_t used_writes = 0;
  std::vector<std::unique_ptr<TransactionWrite>> copies;  // at second homes
  std::size_t used_copies = 0;
  std::vector<TransactionWrite*> order;  // all of both, by home and chain
  std::vector<TransactionChain> chains;
  std::vector<TransactionBucket> buckets;
  std::vector<TransactionHeader> headers;
  std::uint64_t room_since_ns = 0;  // waits for room; 0: not yet
  Rest rest;
  std::vector<std::unique_ptr<TransactionShare>> shares;
  std::size_t used_shares = 0;
  std::size_t decider = 0;  // a share
  std::uint64_t serial = 0;
  std::uint64_t lock_word = 0;
  std::size_t record = kNoRecord;
  std::size_t posted = 0;
  Completion done;

  /// A commit, of which nothing has been done yet.
  void begin() noexcept;
};

/// A home's question to the other homes of a transaction whose writer is gone: is it committed?
struct TransactionInquiry {
  std::uint64_t lock = 0;
  std::size_t record = 0;
  std::uint32_t homes = 0;
  std::uint32_t next = 0;
  std::array<std::uint16_t, kMaxTransactionHomes> ranks{};
  bool has_posted = false;
  bool has_heard_of_death = false;  // the home that is asked
  bool is_answered = false;
  bool is_committed = false;
  Rest rest;
  std::uint64_t word = 0;
  Completion done;
};

}  // namespace dunlin::store
