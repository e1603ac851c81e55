#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <dunlin/node/engine.hpp>
#include <dunlin/segment.hpp>

/// The shared segments of a node, for any thread (segment.hpp says what segments are).
///
///     dunlin::SegmentsHandle segments = node.segments();
///     const dunlin::Key key = segments.allocate({.bytes = 4096, .name = "frame"}).get();
///     segments.put(key, dunlin::bytes_of(frame)).get();
///     const std::uint64_t version = segments.get(key, dunlin::bytes_of(frame)).get();
///
/// Buffers belong to the caller until the future is ready. A lock belongs to the process, not to
/// the thread. A call on a released key fails with `released`, and one whose member has died with
/// `lost`.
namespace dunlin {

class SegmentsHandle {
 public:
  SegmentsHandle(std::shared_ptr<node::Engine> engine, const std::string& name,
                 SpaceOptions options);

  [[nodiscard]] Future<Key> allocate(const SegmentSpec& spec);
  Future<void> release(Key key);
  /// Fails with `unknown` if no segment has the name.
  [[nodiscard]] Future<Key> find(const std::string& name);
  /// The value is the version that was got, or put.
  [[nodiscard]] Future<std::uint64_t> get(Key key, std::span<std::byte> to,
                                          std::uint64_t offset = 0);
  Future<std::uint64_t> put(Key key, std::span<const std::byte> from, std::uint64_t offset = 0);
  /// The value says whether the last holder died with the lock, so that the data may be half
  /// changed.
  [[nodiscard]] Future<bool> lock(Key key, std::uint64_t timeout_ns = remote::kForever);
  Future<void> unlock(Key key);

 private:
  class Object;
  template <class T, class Begin, class Convert>
  Future<T> call(const char* name, bool borrows, const Begin& begin, const Convert& convert);
  std::shared_ptr<node::Engine> engine_;
  std::shared_ptr<Object> object_;
};

}  // namespace dunlin
