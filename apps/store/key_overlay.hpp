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
///     co_await job.transact(keys, [&] {
///       overlay.emplace(keys);
///       job.error = overlay->run(command, session, words, protocol, replies);  // for each
///       return job.error == nullptr && overlay->settle();  // fills in the changes
///     });
///
/// It stays until the next decision, or the call's end: it has the values that are put. All that
/// runs within it, scripts included, has kMaxScriptNs of processor time together.
class KeyOverlay {
 public:
  /// `outer`: the decision is one of a command within that overlay.
  explicit KeyOverlay(std::span<TransactionKey> keys, KeyOverlay* outer = nullptr);

  /// Does one command, and appends its reply. `words` stay until then. Returns why the commands
  /// cannot go on, which have taken too much: the reply is cut off then. Null: they can.
  [[nodiscard]] const char* run(const Command& command, Session& session,
                                std::span<const std::string_view> words, Protocol protocol,
                                std::string& replies);
  /// When the commands must end, in nanoseconds of this thread's processor time.
  [[nodiscard]] std::uint64_t end_cpu_ns() noexcept;
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
    std::string own = {};  // holds a value that is not the key's
  };

  void run_whole(const Command& command, Session& session, std::span<const std::string_view> words,
                 Reply& reply, const std::string& replies);
  void run_job(const Command& command, Session& session, std::span<const std::string_view> words,
               Reply& reply);
  [[nodiscard]] const char* exhausted(const std::string& replies) noexcept;
  [[nodiscard]] bool is_late() noexcept;
  void put(Entry& entry, std::string_view value, std::uint64_t ttl_ns);
  void erase(Entry& entry) noexcept;

  std::map<std::string_view, Entry> entries_;
  std::size_t work_bytes_ = 0;
  std::uint64_t end_cpu_ns_;  // 0: nobody has asked for it yet
  // The last look at the clock.
  std::size_t looked_at_bytes_ = 0;
  std::uint32_t runs_since_look_ = 0;
  bool is_late_ = false;
};

/// The processor time of this thread so far.
[[nodiscard]] std::uint64_t cpu_ns() noexcept;

}  // namespace dunlin::app::resp
