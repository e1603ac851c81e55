#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <dunlin/limits.hpp>
#include <dunlin/segment/spec.hpp>

/// What the clients of a daemon use: memory of the pools, by account, and locks. An account belongs
/// to a client, for segments that go with it, or to a user, for segments with a name, which stay.
namespace dunlin::attached {

class Ledger {
 public:
  using Account = std::uint64_t;
  [[nodiscard]] static constexpr Account of_user(std::uint32_t user) noexcept {
    return std::uint64_t{1} << 63 | user;
  }

  /// Charges an account; returns false, and charges nothing, if it would have more than `most`.
  [[nodiscard]] bool charge(Account account, std::uint64_t bytes, std::uint64_t most) {
    std::uint64_t& used = used_[account];
    if (bytes > most || used > most - bytes) return false;
    used += bytes;
    return true;
  }
  void refund(Account account, std::uint64_t bytes) noexcept {
    const auto found = used_.find(account);
    if (found == used_.end()) return;
    found->second -= bytes;
    if (found->second == 0) used_.erase(found);
  }
  /// Notes that a segment exists for which so much was charged.
  void record(Key key, Account account, std::uint64_t bytes) {
    segments_[key.value] = {account, bytes};
  }
  /// Notes that the segment exists no more.
  void forget(Key key) noexcept {
    const auto found = segments_.find(key.value);
    if (found == segments_.end()) return;
    refund(found->second.account, found->second.bytes);
    segments_.erase(found);
  }
  [[nodiscard]] std::vector<Key> segments_of(Account account) const {
    std::vector<Key> all;
    for (const auto& [key, segment] : segments_)
      if (segment.account == account) all.push_back(Key{key});
    return all;
  }
  /// Whether any client may take one more lock, which counts until it is given back.
  [[nodiscard]] bool take_lock() noexcept {
    if (locks_ == kMaxClientLocks) return false;
    ++locks_;
    return true;
  }
  void give_back_locks(std::size_t locks) noexcept { locks_ -= locks; }

  [[nodiscard]] std::uint64_t used(Account account) const noexcept {
    const auto found = used_.find(account);
    return found == used_.end() ? 0 : found->second;
  }

 private:
  struct Segment {
    Account account;
    std::uint64_t bytes;
  };
  std::unordered_map<Account, std::uint64_t> used_;
  std::unordered_map<std::uint64_t, Segment> segments_;
  std::size_t locks_ = 0;  // locks that clients hold or wait for
};

}  // namespace dunlin::attached
