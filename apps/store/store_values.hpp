#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/store.hpp>

#include "store/key_values.hpp"
#include "store/store_transact.hpp"

namespace dunlin::app::resp {

/// A transaction under way, and the call that waits for it.
struct UnderWay {
  StoreTransact* transact;
  Call* call;
};
using StoreTransacts = std::vector<UnderWay>;

/// The store of a group's members behind the Redis commands of one of them.
class StoreValues final : public KeyValues {
 public:
  /// The store outlives it.
  explicit StoreValues(Store& store) noexcept : store_(store) {}

  [[nodiscard]] std::unique_ptr<Call> make_call() override;
  std::size_t poll() override;
  [[nodiscard]] std::size_t under_way() const override;
  [[nodiscard]] Waits waits() const override {
    Waits all = store_.waits();
    all.fabrics.push_back(&store_.fabric());
    return all;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> figures() const override;
  [[nodiscard]] MemoryLimit memory_limit() const override;
  void limit_memory(std::uint64_t bytes) override;
  [[nodiscard]] std::uint64_t unix_ms() const override;

 private:
  Store& store_;
  StoreTransacts transacts_;
};

}  // namespace dunlin::app::resp
