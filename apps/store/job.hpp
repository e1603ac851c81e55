#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_values.hpp"
#include "store/multi.hpp"

namespace dunlin::app::resp {

struct Command;
class KeyOverlay;
class Session;

/// A Job is one command of a session, or what it does to one of its keys, from its start until its
/// reply is written.
struct Job {
  enum class State : std::uint8_t { fresh, under_way, ended };

  const Command* command = nullptr;
  Session* session = nullptr;
  State state = State::fresh;
  std::vector<std::string_view> arguments;  // the command's name first; in the session's input
  Call* call = nullptr;
  Order order;
  std::size_t key_hash = 0;

  // The state of a command between its steps.
  const char* error = nullptr;  // found by `decide`
  bool flag = false;
  std::uint32_t step = 0;
  std::uint32_t empty_steps = 0;  // for a scan
  std::int64_t number = 0;
  std::string scratch;
  std::vector<std::string> found;  // keys that a scan has found
  std::vector<TransactionKey> keys;
  std::unique_ptr<Transaction> transaction;  // for EXEC
  std::shared_ptr<KeyOverlay> overlay;       // has the values that a decision has put
  KeyOverlay* outer = nullptr;               // belongs to the transaction that runs this command

  /// The place of a key among those of the transaction, to which it is added.
  std::size_t add_key(std::string_view key) {
    const auto at = std::ranges::find(keys, key, &TransactionKey::key);
    if (at != keys.end()) return static_cast<std::size_t>(at - keys.begin());
    keys.push_back({.key = key});
    return keys.size() - 1;
  }
  /// Orders a transaction on the keys that were added; `decide` gets the job.
  void order_transaction(Order::DecideKeys decide) noexcept {
    order.kind = Order::Kind::transact;
    order.keys = keys;
    order.decide_keys = decide;
    order.context = this;
  }
  /// The error of a decision, which then changes nothing.
  [[nodiscard]] Change fail(const char* why) noexcept {
    error = why;
    return {};
  }
  void order_update(Order::Decide decide) noexcept {
    order.kind = Order::Kind::update;
    order.decide = decide;
    order.context = this;
  }

  void reset() noexcept {
    command = nullptr;
    session = nullptr;
    state = State::fresh;
    arguments.clear();
    call = nullptr;
    order = {};
    error = nullptr;
    flag = false;
    step = empty_steps = 0;
    number = 0;
    scratch.clear();
    found.clear();
    keys.clear();
    transaction.reset();
    overlay.reset();
    outer = nullptr;
  }
};

}  // namespace dunlin::app::resp
