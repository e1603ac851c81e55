#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/table/layout.hpp>

#include "table/row_copy.hpp"

namespace dunlin {

class TableCounters;

/// Refresh::reads: fetches the peers' rows into private memory, all in parallel, and copies what
/// has arrived whole into the table. Each row is fetched again as soon as it has arrived and the
/// interval has passed. Rows with lists take three steps, so that TAB-C4 holds: their ends, the
/// row, their begins.
class Puller {
 public:
  using InitialRow = std::function<void(std::byte* row)>;
  Puller(Fabric& fabric, const Layout& layout, RegionId region, std::size_t stride_bytes,
         std::size_t rows, std::uint64_t interval_ns, const InitialRow& initial);
  ~Puller();
  Puller(const Puller&) = delete;
  Puller& operator=(const Puller&) = delete;

  /// Copies the rows that have arrived into the table's `rows`, and fetches those that are due.
  void pull(std::span<const std::uint32_t> targets, std::span<const Rank> members,
            std::span<const std::byte* const> rows, TableCounters& counters) noexcept;

 private:
  enum class Step : std::uint8_t { idle, ends, row, begins };
  struct Pull {
    Completion done;
    Step step = Step::idle;
    std::uint64_t started_ns = 0;
    std::byte* staging = nullptr;
    std::vector<row_copy::ListGuard> guards;
  };

  void advance(std::uint32_t row, Rank peer, std::byte* into, TableCounters& counters) noexcept;
  void post_batch() noexcept;
  void start(std::uint32_t row, Rank peer, Step step) noexcept;
  void read(Pull& pull, std::uint32_t row, Rank peer, std::size_t offset, void* to,
            std::size_t bytes) noexcept;
  void take_in(Pull& pull, std::byte* into) noexcept;
  [[nodiscard]] bool due(const Pull& pull) const noexcept;

  Fabric& fabric_;
  const Layout& layout_;
  RegionId region_;
  std::size_t stride_bytes_;
  std::uint64_t interval_ns_;
  std::uint64_t now_ns_ = 0;
  std::vector<const Column*> lists_;
  std::vector<std::byte> memory_;
  std::vector<Pull> pulls_;
  std::vector<Operation> batch_;
};

}  // namespace dunlin
