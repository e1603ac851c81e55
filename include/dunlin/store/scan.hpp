#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <dunlin/store/operation.hpp>

namespace dunlin {

namespace store {
class Scan;
}

/// The place where a scan goes on: 0 begins a scan, and the last step gives 0. It may be kept, and
/// sent to other processes, for as long as the store exists.
using StoreCursor = std::uint64_t;

/// An entry as a scan sees it; the bytes stay until the scan's next step.
struct StoreEntry {
  std::span<const std::byte> key;
  std::span<const std::byte> value;  // if the scan reads values
  std::uint64_t version = 0;
  std::uint64_t ttl_ns = kNoExpiry;
};

struct ScanOptions {
  bool values = true;         // false: keys only
  std::uint32_t buckets = 8;  // main headers, with their overflow, for each step
};

/// A StoreScan goes over the entries of all members, some buckets a step. A key that is there
/// during the whole scan is seen exactly once; one that comes or goes may be seen or not.
///
///     dunlin::StoreScan scan(store);
///     dunlin::StoreCursor cursor = 0;
///     do {
///       scan.step(cursor);
///       if (scan.wait() != dunlin::remote::Status::ok) break;
///       for (std::size_t i = 0; i < scan.size(); ++i) use(scan[i]);
///       cursor = scan.cursor();
///     } while (cursor != 0);
class StoreScan final : public remote::Call<remote::Status> {
 public:
  explicit StoreScan(Store& store, ScanOptions options = {});
  ~StoreScan();

  /// Starts the next step. Ends with `lost` if the member at which the cursor stands has failed;
  /// cursor() is behind that member then, so that the scan can go on. A cursor that no scan gave
  /// ends with `out_of_range`.
  void step(StoreCursor from);
  [[nodiscard]] StoreCursor cursor() const noexcept;

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] StoreEntry operator[](std::size_t i) const;

 private:
  std::unique_ptr<store::Scan> scan_;
};

}  // namespace dunlin
