#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <dunlin/container/aggregator.hpp>
#include <dunlin/container/hash_map.hpp>

namespace dunlin {

struct MapBufferOptions {
  std::string name;                                      // the same at all members
  container::MapCall call = container::MapCall::insert;  // insert, assign or add
  /// `local` promises that only such buffers are used on the map now.
  Promise promise = Promise::both;
  std::uint32_t elements = 256;  // elements in one batch
};

/// A MapBuffer inserts into a map by batches: the member that holds a key takes them in its poll(),
/// without a round trip for each. One thread uses it, the one that polls.
///
///     dunlin::MapBuffer buffer(counts, {.name = "counts", .call = MapCall::add});
///     for (const Word& word : words) buffer.add(word, 1);
///     if (buffer.flush() == dunlin::remote::Status::full) ...   // all is in the map, or refused
template <PlainKey K, class V>
class MapBuffer {
  struct Element {
    K key;
    [[no_unique_address]] V value;
  };

 public:
  /// Throws Error, also if a fabric atomic and a processor atomic on one word do not exclude each
  /// other, unless only messages write to the map, or `promise` is local.
  MapBuffer(HashMap<K, V>& map, const MapBufferOptions& options)
      : map_(map),
        call_(options.call),
        promise_(options.promise),
        batches_(checked(map, options).core().containers(),
                 {.name = options.name, .elements = options.elements},
                 typename Aggregator<Element>::BatchHandler(
                     [this](Rank, std::span<const Element> elements) { return apply(elements); })) {
  }

  /// Adds an element; waits only while there is no room. Returns `lost` if the member that holds
  /// the key is lost.
  remote::Status add(const K& key, const V& value) {
    return batches_.add(map_.home_of(key), Element{key, value});
  }
  /// Adds an element if there is room; returns whether there was. If not: poll, and try again.
  [[nodiscard]] bool try_add(const K& key, const V& value) noexcept {
    return batches_.push(map_.home_of(key), Element{key, value});
  }
  /// Sends what is in the buffers. The operation ends once the elements have been applied;
  /// refused() says how many had no room.
  [[nodiscard]] remote::Call<remote::Status> begin_flush() { return batches_.begin_flush(); }
  /// Waits until all have been inserted. Ends `full` if a part had no room for some.
  remote::Status flush(std::uint64_t timeout_ns = remote::kForever) {
    const std::uint64_t before = refused_;
    const remote::Status status = batches_.flush(timeout_ns);
    refused_ = batches_.refused();
    return status == remote::Status::ok && refused_ > before ? remote::Status::full : status;
  }
  /// How many elements of this member had no room so far.
  [[nodiscard]] std::uint64_t refused() const noexcept { return batches_.refused(); }

 private:
  /// How many cache misses of a batch pass at once.
  static constexpr std::size_t kAhead = 16;

  static HashMap<K, V>& checked(HashMap<K, V>& map, const MapBufferOptions& options) {
    container::check_buffer(map.core(), options.call, options.promise);
    return map;
  }
  container::Handled apply(std::span<const Element> elements) {
    container::Handled handled;
    for (const Element& element : elements.first(std::min(kAhead, elements.size())))
      map_.core().prefetch(&element.key);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const Element& element = elements[i];
      if (i + kAhead < elements.size()) map_.core().prefetch(&elements[i + kAhead].key);
      alignas(8) std::array<std::byte, sizeof(K) + container::kBytesOf<V>> payload;
      std::memcpy(payload.data(), &element.key, sizeof(K));
      if constexpr (container::kBytesOf < V >> 0)
        std::memcpy(payload.data() + sizeof(K), &element.value, sizeof(V));
      const container::MapApplied applied = map_.core().apply(call_, promise_, payload.data());
      if (applied.is_again()) break;
      ++handled.taken;
      if (applied.status() != remote::Status::ok) ++handled.refused;
    }
    return handled;
  }

  HashMap<K, V>& map_;
  container::MapCall call_;
  Promise promise_;
  std::uint64_t refused_ = 0;
  Aggregator<Element> batches_;
};

}  // namespace dunlin
