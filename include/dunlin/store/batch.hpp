#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <dunlin/store/operation.hpp>

namespace dunlin {

/// A StoreBatch is several calls on a store that are under way at once: multi-get, multi-put, or a
/// mixture. Each takes effect by itself; the batch is no transaction. It keeps its operations when
/// it is cleared, so that a batch that is used again allocates nothing.
///
///     dunlin::StoreBatch batch(store);
///     batch.get("a");
///     batch.put("b", value);
///     batch.wait();
///     for (std::size_t i = 0; i < batch.size(); ++i) use(batch[i].found(), batch[i].value());
class StoreBatch {
 public:
  explicit StoreBatch(Store& store) noexcept : store_(store) {}

  // Each of these starts a further operation, which has the number size() - 1 from then on.
  StoreOperation& get(StoreKey key);
  /// Gets of these keys, in their order. Where memory is mapped, as on shm, they wait for it
  /// together, and several times as fast as one by one.
  void get_many(std::span<const StoreKey> keys);
  StoreOperation& put(StoreKey key, std::span<const std::byte> value,
                      std::uint64_t ttl_ns = kNoExpiry);
  StoreOperation& insert(StoreKey key, std::span<const std::byte> value,
                         std::uint64_t ttl_ns = kNoExpiry);
  StoreOperation& erase(StoreKey key);
  StoreOperation& update(StoreKey key, StoreUpdater updater);

  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  [[nodiscard]] StoreOperation& operator[](std::size_t i) { return *operations_.at(i); }
  [[nodiscard]] bool finished() const noexcept;
  /// Waits for all; returns `ok`, or the first status that is not `ok`.
  remote::Status wait(std::uint64_t timeout_ns = remote::kForever);
  /// Abandons the calls under way.
  void clear() noexcept;

 private:
  StoreOperation& next();
  Store& store_;
  std::vector<std::unique_ptr<StoreOperation>> operations_;
  std::size_t used_ = 0;
};

}  // namespace dunlin
