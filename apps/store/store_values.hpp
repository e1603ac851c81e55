#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/store.hpp>

#include "store/key_values.hpp"
#include "store/server_directory.hpp"
#include "store/store_transact.hpp"

namespace dunlin::app::resp {

/// A transaction under way, and the call that waits for it.
struct UnderWay {
  StoreTransact* transact;
  Call* call;
};
using StoreTransacts = std::vector<UnderWay>;

struct StoreValuesOptions {
  /// Hears of each member whose store has other options.
  std::function<void(const std::string& why)> on_refused = [](const std::string&) {};
  std::uint32_t copies = 1;  // that the store has of each key
  std::uint32_t weight = 0;  // this member's usual one; 0: it contributes no memory
  /// Is polled with the store. Null: this member is the only server.
  ServerDirectory* directory = nullptr;
  /// Is called by each poll().
  std::function<void()> on_poll = [] {};
};

/// The store of a group's members behind the Redis commands of one of them.
class StoreValues final : public KeyValues {
 public:
  /// The store, and the directory, outlive it.
  StoreValues(Store& store, StoreValuesOptions options) noexcept
      : store_(store), options_(std::move(options)) {}

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
  [[nodiscard]] Rank self() const override { return store_.fabric().rank(); }
  [[nodiscard]] std::uint32_t copies() const override { return options_.copies; }
  [[nodiscard]] StorePlacement placement() const override { return store_.placement(); }
  [[nodiscard]] std::vector<ServedAt> servers() const override;
  [[nodiscard]] const char* hold_keys(bool holds) override;
  [[nodiscard]] std::uint64_t unix_ns() const override;

 private:
  Store& store_;
  StoreTransacts transacts_;
  std::size_t next_ = 0;  // the first to be polled next
  StoreValuesOptions options_;
  std::string why_refused_;  // what on_refused was told last
};

}  // namespace dunlin::app::resp
