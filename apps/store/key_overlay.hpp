#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/command_table.hpp"
#include "store/key_values.hpp"

namespace dunlin::app::resp {

/// The keys of a transaction while its commands run: they read and change the keys here, and nobody
/// else sees that before the commit.
///
///     bool decide(void* context, std::span<TransactionKey> keys) {
///       job.overlay = std::make_shared<KeyOverlay>(keys);
///       job.overlay->run(command, session, words, protocol, replies);  // for each command
///       return job.overlay->settle();                                  // fills in the changes
///     }
///
/// It stays until the next decision, or the call's end: it has the values that are put.
class KeyOverlay {
 public:
  explicit KeyOverlay(std::span<TransactionKey> keys);

  /// Does one command, and appends its reply. `words` stay until then.
  void run(const Command& command, Session& session, std::span<const std::string_view> words,
           Protocol protocol, std::string& replies);
  /// Why the commands cannot go on: they have read too much. Null: they can.
  [[nodiscard]] const char* exhausted() const noexcept;
  /// Fills in what becomes of the keys; returns false if they are too many.
  [[nodiscard]] bool settle();

 private:
  class OverlayCall;
  struct Entry {
    TransactionKey* key = nullptr;
    bool found = false;
    std::string_view value = {};
    std::uint64_t ttl_ns = kForeverNs;
    bool changed = false;
    bool ttl_changed = false;
    std::string own = {};  // of a value that is not the key's
  };

  void run_job(Job& job, OverlayCall& call, Reply& reply);
  void put(Entry& entry, std::string_view value, std::uint64_t ttl_ns);
  void erase(Entry& entry) noexcept;

  std::map<std::string_view, Entry> entries_;
  std::size_t work_bytes_ = 0;
};

}  // namespace dunlin::app::resp
