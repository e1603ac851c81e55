#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "log/disk.hpp"

/// Files in memory, whose machine crashes when it is told to. After a crash, each sector that was
/// not synced is there or not, in any order. Changes to a directory survive up to some moment. All
/// is drawn from a seed. One thread at a time.
namespace dunlin::log {

class SimulatedDisk final : public Disk {
 public:
  explicit SimulatedDisk(std::uint64_t seed, std::size_t sector_bytes = 512);
  ~SimulatedDisk() override;

  std::unique_ptr<Directory> open(const std::string& path) override;
  /// The worker takes as long as latency() says, by the clock of the fabric that it wakes; without
  /// a fabric, it takes no time.
  std::unique_ptr<Worker> hire(std::function<void()> job) override;
  void latency(std::uint64_t least_ns, std::uint64_t most_ns) noexcept;

  /// Crashes now. Everything that is open is useless from now on.
  void crash();
  /// Lets so many more operations change something, the last one perhaps in part; then all fail
  /// until crash().
  void crash_after(std::uint64_t operations) noexcept { left_ = operations; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] bool stopped() const noexcept { return left_ == 0; }

  /// Limits the bytes in all files together.
  void capacity(std::uint64_t bytes) noexcept { capacity_ = bytes; }
  [[nodiscard]] std::uint64_t used() const noexcept;
  /// The next sync of a file fails. The bytes that it should have written stay in memory only, and
  /// later syncs treat them as written.
  void fail_next_sync() noexcept { fail_sync_ = true; }
  /// Gives room again; operations that have not failed yet succeed.
  void mend() noexcept;

  /// The content of a directory, for a test to look at and to spoil.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const;
  [[nodiscard]] std::vector<std::byte> content(const std::string& path, const std::string& name);
  void replace(const std::string& path, const std::string& name, std::vector<std::byte> bytes);
  void remove(const std::string& path, const std::string& name);

 private:
  class OpenFile;
  class OpenDirectory;
  class LateWorker;

  struct Change {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
    bool truncates;
  };
  struct Inode {
    std::vector<std::byte> now;
    std::vector<std::byte> synced;
    std::vector<Change> pending;
  };
  using Entries = std::map<std::string, std::shared_ptr<Inode>>;
  struct Folder {
    Entries now;
    std::vector<Entries> pending;  // the entries before each change; pending[0] is synced
    bool open = false;
  };

  /// Counts an operation. Returns whether it is the last one before a crash.
  [[nodiscard]] bool count();
  void expect_alive(std::uint64_t life) const;
  [[nodiscard]] std::uint64_t room_left() const noexcept {
    return capacity_ - std::min(used(), capacity_);
  }
  static void apply(std::vector<std::byte>& file, const Change& change);
  [[nodiscard]] std::vector<std::byte> survives(const Inode& inode);
  [[nodiscard]] std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  std::mt19937_64 random_;
  std::size_t sector_bytes_;
  std::map<std::string, Folder> folders_;
  std::uint64_t life_ = 0;  // counts the crashes
  std::uint64_t operations_ = 0;
  std::uint64_t salts_ = 0;
  std::optional<std::uint64_t> left_;
  std::uint64_t capacity_ = UINT64_MAX;
  bool fail_sync_ = false;
  std::uint64_t least_latency_ns_ = 0;
  std::uint64_t most_latency_ns_ = 0;
};

}  // namespace dunlin::log
