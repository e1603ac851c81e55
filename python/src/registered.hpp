#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include <dunlin/fabric.hpp>
#include <dunlin/node.hpp>

/// Memory that the node's fabric has registered, so that a network card reads and writes it without
/// a copy. Python sees it through a second mapping of the same pages: that one stays when the node,
/// and its registration, has ended, as long as any view of it is there. It knows no Python object
/// (PY-1). Any thread, without the GIL.
namespace dunlin::python {

/// The second mapping of a region's pages.
class SharedPages {
 public:
  /// Throws Error if the pages cannot be mapped twice.
  explicit SharedPages(std::span<std::byte> memory);
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  std::span<std::byte> pages_;
  std::span<std::byte> memory_;
};

/// All registered memory of a node.
class RegisteredMemories final : public node::NodeObject {
 public:
  explicit RegisteredMemories(node::Engine& engine) noexcept : engine_(engine) {}
  /// Under the lock: allocates zeroed memory. Throws Error.
  [[nodiscard]] std::unique_ptr<SharedPages> allocate(std::size_t bytes);
  /// Under the lock: ends the registration.
  void release(const SharedPages& pages) noexcept;
  /// Where the fabric has these bytes, if Python has them from here; else the bytes themselves. The
  /// result is valid under the lock, while the node runs.
  [[nodiscard]] std::span<std::byte> registered(std::span<std::byte> bytes);
  void end() noexcept override;

 private:
  node::Engine& engine_;
  std::mutex mutex_;
  std::map<std::byte*, Region> regions_;  // by the beginning of the second mapping
};

/// Registered memory of a node, until it is destroyed.
class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<node::Engine> engine, std::shared_ptr<RegisteredMemories> all,
                   std::size_t bytes);
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory();
  [[nodiscard]] std::span<std::byte> span() const noexcept { return pages_->memory(); }

 private:
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<RegisteredMemories> all_;
  std::unique_ptr<SharedPages> pages_;
};

}  // namespace dunlin::python
