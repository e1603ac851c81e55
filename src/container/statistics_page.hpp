#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "container/statistics_page_format.hpp"
#include "fabric/page_schedule.hpp"

namespace dunlin::container {

class PageLine;

/// Written by the thread of its Containers only, read by any process that may map it, never read
/// back.
class StatisticsPage {
 public:
  StatisticsPage(Fabric& fabric, std::uint32_t channel);

  /// Called in each poll, with how much it has done.
  void show(std::size_t done, std::size_t in_flight) noexcept;

 private:
  friend class PageLine;
  void add(PageLine& line);
  void remove(PageLine& line) noexcept;
  void note_change() noexcept { schedule_.note_change(); }

  Fabric& fabric_;
  Region region_;
  container_page::Page* page_;
  std::vector<PageLine*> lines_;
  std::array<PageLine*, container_page::kMaxShown> shown_{};  // by slot
  std::uint64_t looked_at_ns_ = 0;
  PageSchedule schedule_;
};

/// A PageLine publishes one container; the container owns it.
class PageLine {
 public:
  /// Called every 10 ms while the process polls: how many entries there are, as far as is known.
  /// Not in each poll, because the words lie in cache lines that other members change.
  using Look = std::function<std::uint64_t()>;

  PageLine(StatisticsPage& page, container_page::Kind kind, const std::string& name,
           std::uint64_t capacity, Look look);
  ~PageLine() { page_.remove(*this); }
  PageLine(const PageLine&) = delete;
  PageLine& operator=(const PageLine&) = delete;

  void count(container_page::Way way) noexcept {
    ++calls_[static_cast<std::size_t>(way)];
    changed();
  }
  void set_capacity(std::uint64_t capacity) noexcept {
    capacity_ = capacity;
    changed();
  }

 private:
  friend class StatisticsPage;
  static constexpr std::size_t kNoSlot = container_page::kMaxShown;

  void changed() noexcept {
    is_changed_ = true;
    page_.note_change();
  }
  void look() noexcept;

  StatisticsPage& page_;
  container_page::Kind kind_;
  std::string name_;
  std::size_t slot_ = kNoSlot;
  std::uint64_t capacity_;
  std::uint64_t entries_ = container_page::kUnknown;
  std::array<std::uint64_t, container_page::kWays> calls_{};
  Look look_;
  bool is_changed_ = true;
};

}  // namespace dunlin::container
