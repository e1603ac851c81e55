#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
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
  using Refused = std::function<void(const std::string& why)>;

  /// The store outlives it. `on_refused` hears of each member whose store has other options.
  StoreValues(Store& store, Refused on_refused) noexcept
      : store_(store), on_refused_(std::move(on_refused)) {}

  [[nodiscard]] std::unique_ptr<Call> make_call() override;
  std::size_t poll() override;
  [[nodiscard]] std::size_t under_way() const override;
  [[nodiscard]] Waits waits() const override {
    Waits all = store_.waits();
    all.fabrics.push_back(&store_.fabric());
    return all;
  }
  [[nodiscard]] std::map<std::string, std::string> figures() const override;
  [[nodiscard]] MemoryLimit memory_limit() const override;
  void limit_memory(std::uint64_t bytes) override;
  [[nodiscard]] std::uint64_t unix_ns() const override;

 private:
  Store& store_;
  StoreTransacts transacts_;
  std::size_t next_ = 0;  // the first to be polled next
  Refused on_refused_;
  std::string why_refused_;  // what on_refused_ was told last
};

}  // namespace dunlin::app::resp
