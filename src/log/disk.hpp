#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dunlin {
class Fabric;
}

/// The storage below a log: files in a directory, and a worker that waits for the disk. Implemented
/// by real files (posix_disk.hpp), and by a simulated disk that crashes (simulated_disk.hpp).
///
/// Every function throws Error if it fails, with path, offset and reason. A change (bytes written,
/// a file created, renamed or removed) is certain to outlive a crash of the machine only after the
/// file, or the directory, has been synced.
namespace dunlin::log {

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  [[nodiscard]] virtual std::uint64_t bytes() = 0;
  /// Returns how many bytes there were: fewer than asked for only at the end.
  virtual std::size_t read(std::uint64_t offset, std::span<std::byte> into) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  virtual void truncate(std::uint64_t bytes) = 0;
  virtual void sync() = 0;
};

/// A directory that no other process has open.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  virtual ~Directory() = default;

  [[nodiscard]] virtual std::string path() const = 0;
  [[nodiscard]] virtual std::vector<std::string> names() = 0;
  virtual std::unique_ptr<File> open(const std::string& name) = 0;
  virtual std::unique_ptr<File> create(const std::string& name) = 0;  // replaces what is there
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& name) = 0;
  virtual void sync() = 0;
  /// A number that nobody can guess, and not 0.
  [[nodiscard]] virtual std::uint64_t draw_salt() = 0;
};

/// Does one thing at a time, beside the thread that starts it: so poll() does not wait for the
/// disk.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for the started operations.
  virtual ~Worker() = default;

  /// Requires that it is idle().
  virtual void start() = 0;
  /// Whether the job that was started is done. Then everything that it wrote can be seen.
  [[nodiscard]] virtual bool idle() = 0;
  virtual void wait() = 0;  // until idle()
  /// Whether this process is a forked child, in which nobody works.
  [[nodiscard]] virtual bool is_gone() const noexcept { return false; }
  /// The fabric whose sleeper is woken when something is done; null: none. The fabric may go
  /// afterwards.
  virtual void wake(Fabric* fabric) = 0;
};

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  /// Creates the directory if it is not there; its parent must be. Error if it is open already.
  virtual std::unique_ptr<Directory> open(const std::string& path) = 0;
  /// The job must not throw.
  virtual std::unique_ptr<Worker> hire(std::function<void()> job) = 0;
};

}  // namespace dunlin::log
