#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dunlin::app::resp {

struct Command;
class Service;

/// The commands that a client has sent since MULTI, and the keys that it watches.
class Transaction {
 public:
  struct Queued {
    const Command* command;
    std::vector<std::string> words;
  };
  struct Watched {
    std::string key;
    std::uint64_t version;  // 0: it was absent
  };

  explicit Transaction(Service& service) noexcept : service_(service) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// MULTI was there.
  bool open = false;
  /// A command since MULTI was refused: EXEC does nothing.
  bool broken = false;
  /// That command is the MULTI itself: no command is kept, until EXEC, DISCARD or another MULTI.
  bool refused = false;

  /// Keeps a command for EXEC; returns the error if it cannot, and the transaction is broken then.
  [[nodiscard]] const char* queue(const Command& command, std::span<const std::string_view> words);
  /// Returns the error if there are too many keys.
  [[nodiscard]] const char* watch(std::string_view key, std::uint64_t version);
  [[nodiscard]] const std::vector<Queued>& commands() const noexcept { return commands_; }
  [[nodiscard]] const std::vector<Watched>& watched() const noexcept { return watched_; }
  /// All keys of the commands, and watched keys; each once.
  [[nodiscard]] const std::vector<std::string>& keys() const noexcept { return keys_; }

 private:
  [[nodiscard]] bool add_key(std::string_view key);

  Service& service_;
  std::vector<Queued> commands_;
  std::vector<Watched> watched_;
  std::vector<std::string> keys_;
  std::size_t bytes_ = 0;
};

}  // namespace dunlin::app::resp
