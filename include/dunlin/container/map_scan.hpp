#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <dunlin/container/map_core.hpp>
#include <dunlin/container/pooled_value.hpp>
#include <dunlin/container/trait.hpp>

/// A MapScan reads all elements of a map, the parts of all members, piece by piece, beginning with
/// the member's own part. One thread uses it, the one that polls.
///
///     dunlin::container::TypedMapScan<Key, Value> scan = prices.scan();
///     while (!scan.at_end()) {
///       scan.next().wait();
///       scan.for_each_found([](const Key& key, const Value& value) { ... });
///     }
///
/// Invariants (docs/container.md explains them):
///  CON-I1  A scan finds an element that is there from its beginning to its end exactly once, with
///          a value that the element had meanwhile.
///  CON-I2  Under Promise::reads that is kept, a scan finds exactly the elements of the map.
///  CON-I3  A part that cannot be read, and a value that is half written, is left out, and the
///          status of that piece says so.
namespace dunlin::container {

struct PieceValues;

class MapScan {
 public:
  MapScan(const MapScan&) = delete;
  MapScan& operator=(const MapScan&) = delete;
  ~MapScan();

  /// Begins to read the next piece; after the end, the first one again. After `abandoned`,
  /// `stopped`, `broken_promise` and `no_memory`, reads the failed piece again. Gives up a piece
  /// that is being read.
  remote::Call<remote::Status>& next();
  /// The call that reads the piece.
  [[nodiscard]] remote::Call<remote::Status>& piece() noexcept { return piece_; }
  /// How many elements the last piece has.
  [[nodiscard]] std::size_t count() const noexcept { return found_.size(); }
  /// Whether all parts have been read.
  [[nodiscard]] bool at_end() const noexcept { return parts_left_ == 0; }

  [[nodiscard]] remote::Progress& its_progress() const noexcept;

 protected:
  MapScan(MapCore& map, Promise promise);
  /// Key and value of element `i` of the piece.
  [[nodiscard]] const std::byte* payload_of(std::size_t i) noexcept;
  [[nodiscard]] const MapSpec& spec() const noexcept;
  [[nodiscard]] bool is_pooled() const noexcept { return values_ != nullptr; }
  /// With a pool: the value of element `i`; valid until the next call of value_of().
  [[nodiscard]] std::span<const std::byte> value_of(std::size_t i) noexcept;

 private:
  using Status = remote::Status;
  template <class T>
  using Protocol = remote::Protocol<T>;
  Protocol<Status> read_checked();
  Protocol<Status> read_piece();
  Protocol<Status> read_slots(std::uint32_t place, std::uint32_t count);
  Protocol<Status> read_values();
  void look_at(std::uint32_t place) noexcept;
  void go_on(Status status) noexcept;
  [[nodiscard]] std::byte* slot_at(std::uint32_t place) noexcept;
  [[nodiscard]] bool must_count() const noexcept;

  MapState& map_;
  Promise promise_;
  std::vector<CacheLine> window_;
  std::vector<std::byte> payload_;
  std::vector<std::uint32_t> found_;    // places in the window of elements that are whole
  std::vector<std::uint32_t> pending_;  // places in the window of elements to be read again
  std::uint32_t most_;                  // most slots in a piece
  std::uint32_t parts_left_ = 0;
  Rank home_ = 0;
  std::uint32_t level_ = 0;  // the table's number
  std::uint32_t slot_ = 0;
  std::uint32_t count_ = 0;              // slots in this piece
  bool half_ = false;                    // a value of this piece is half written
  std::unique_ptr<PieceValues> values_;  // null if the map has no pool
  remote::Call<remote::Status> piece_;
};

/// A scan of a HashMap; if the map has a pool, the scan reads the blocks of long values, too.
template <class K, class V>
class TypedMapScan final : public MapScan {
 public:
  TypedMapScan(MapCore& map, Promise promise) : MapScan(map, promise) {}

  /// Calls `see(key, value)` for the elements of the last piece.
  template <class See>
  void for_each_found(const See& see) {
    for (std::size_t i = 0; i < count(); ++i) {
      const std::byte* const payload = payload_of(i);
      if constexpr (VariableSize<V>)
        if (is_pooled()) {
          see(unpack<K>(payload, spec().key_bytes), ContainerTrait<V>::value(value_of(i)));
          continue;
        }
      see(unpack<K>(payload, spec().key_bytes),
          unpack<V>(payload + spec().key_bytes, spec().value_bytes));
    }
  }
};

}  // namespace dunlin::container
