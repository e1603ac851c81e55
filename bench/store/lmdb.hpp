#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

/// LMDB in this process, an embedded store beside which ours is measured: its files lie in memory
/// (/dev/shm, if it is there), and it never waits for a disk.
namespace dunlin::bench {

class Lmdb {
 public:
  /// What to do to make it available; empty if it is.
  [[nodiscard]] static std::string missing();

  /// Its files vanish with the process. Throws Error, as all calls do.
  explicit Lmdb(std::size_t most_bytes);
  Lmdb(const Lmdb&) = delete;
  Lmdb& operator=(const Lmdb&) = delete;
  ~Lmdb();

  /// Calls between begin() and end() are one transaction.
  void begin(bool writes);
  void end();
  /// Copies the value of a key that is there.
  void get(std::uint64_t key, std::span<std::byte> value);
  void put(std::uint64_t key, std::span<const std::byte> value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dunlin::bench
