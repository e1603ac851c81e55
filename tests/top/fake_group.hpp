#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <dunlin/table/layout.hpp>

#include "fabric/mapping/base.hpp"
#include "table/statistics_page_format.hpp"
#include "top/sample.hpp"

/// A group whose segments are in our own memory, for `dunlin top` to look at.
namespace dunlin::top {

struct FakeRow {
  Cell<int> step;
  Cell<double> load{0.25};
  std::array<Cell<std::uint8_t>, 3> votes;
  Cell<std::array<char, 8>> city;
  Cell<std::array<std::uint64_t, 3>> stamps;
  List<std::uint32_t, 4> events;
};

/// Aligned, and gone with its last holder, as a mapping.
class FakeMemory {
 public:
  explicit FakeMemory(std::size_t bytes)
      : bytes_(bytes), lines_(std::make_shared<std::vector<Line>>(bytes / sizeof(Line) + 1)) {}
  [[nodiscard]] std::byte* data() const { return lines_->data()->bytes.data(); }
  [[nodiscard]] std::span<const std::byte> span() const { return {data(), bytes_}; }
  [[nodiscard]] std::shared_ptr<const void> holder() const { return lines_; }

 private:
  struct alignas(kCacheLineBytes) Line {
    std::array<std::byte, kCacheLineBytes> bytes{};
  };
  std::size_t bytes_;
  std::shared_ptr<std::vector<Line>> lines_;
};

/// One member with one table; its three segments.
class FakeMember {
 public:
  FakeMember(Rank rank, std::uint32_t members, std::string group = "rack7")
      : rank_(rank),
        members_(members),
        group_(std::move(group)),
        base_(sizeof(mapping::Base)),
        region_(members * sizeof(FakeRow)),
        page_(statistics_page::total_bytes(members)) {
    for (Rank i = 0; i < members; ++i) new (&row(i)) FakeRow;
    statistics_page::Header& h = header();
    h.magic = statistics_page::kMagic;
    h.version = statistics_page::kVersion;
    h.rows = members;
    h.my_row = rank;
    h.row_bytes = h.stride_bytes = sizeof(FakeRow);
    h.rows_offset = statistics_page::rows_offset();
    h.predicates_offset = statistics_page::predicates_offset(members);
    h.predicate_slots = kMaxPublishedPredicates;
    for (Rank i = 0; i < members; ++i) {
      status(i).rank = i;
      set_state(i, i == rank ? RowState::own : RowState::connected);
    }
  }

  FakeRow& row(std::size_t i) { return reinterpret_cast<FakeRow*>(region_.data())[i]; }
  FakeRow& mine() { return row(rank_); }
  statistics_page::Header& header() {
    return *reinterpret_cast<statistics_page::Header*>(page_.data());
  }
  statistics_page::Row& status(std::size_t i) {
    return reinterpret_cast<statistics_page::Row*>(page_.data() +
                                                   statistics_page::rows_offset())[i];
  }
  void set_state(std::size_t i, RowState state) {
    status(i).state = static_cast<std::uint32_t>(state);
  }
  statistics_page::PredicateSlot& predicate(std::size_t i) {
    return reinterpret_cast<statistics_page::PredicateSlot*>(
        page_.data() + statistics_page::predicates_offset(members_))[i];
  }
  mapping::Base& base() { return *reinterpret_cast<mapping::Base*>(base_.data()); }
  [[nodiscard]] const FakeMemory& page() const { return page_; }
  [[nodiscard]] const FakeMemory& region() const { return region_; }

  void show_predicate(std::size_t slot, std::uint64_t id, const std::string& name,
                      PredicateKind kind, std::uint64_t firings, std::uint64_t first_pass = 1) {
    statistics_page::PredicateSlot& p = predicate(slot);
    p.id = id;
    p.kind = static_cast<std::uint32_t>(kind);
    p.firings = firings;
    p.first_pass = first_pass;
    p.triggers = 1;
    p.name = {};
    std::memcpy(p.name.data(), name.data(), name.size());
    ++header().predicates;
  }

  [[nodiscard]] std::vector<Segment> segments() const {
    std::string ranks;
    for (Rank i = 0; i < members_; ++i) ranks += (i == 0 ? "" : " ") + std::to_string(i);
    const std::string text = layout_of<FakeRow>().text();
    std::vector<Segment> all{
        segment(mapping::MappingKind::base, "", "", base_),
        segment(mapping::MappingKind::region, "load",
                text + "members " + ranks + "\nrefresh " + (reads_ ? "reads" : "writes") + "\n",
                region_),
        segment(mapping::MappingKind::published, "stats:load", text, page_)};
    for (const auto& [name, memory] : published_)
      all.push_back(segment(mapping::MappingKind::published, name, "", memory));
    return all;
  }
  /// One more page; zeros.
  template <class Page>
  Page& publish(const std::string& name) {
    const FakeMemory& memory = published_.emplace_back(name, FakeMemory(sizeof(Page))).second;
    return *reinterpret_cast<Page*>(memory.data());
  }
  void pull_instead_of_push() {
    reads_ = true;
    header().refresh = 1;
  }

 private:
  [[nodiscard]] Segment segment(mapping::MappingKind kind, std::string name, std::string text,
                                const FakeMemory& memory) const {
    Segment s{.info = {.kind = kind,
                       .owner_pid = 100 + rank_,
                       .owner_rank = rank_,
                       .members = members_,
                       .incarnation = 1000 + rank_,
                       .generation = 1,
                       .layout_hash = 5,
                       .bytes = memory.span().size(),
                       .fabric = "shm",
                       .group = group_,
                       .member = "node" + std::to_string(rank_),
                       .region = std::move(name),
                       .layout_text = std::move(text)},
              .pid = static_cast<pid_t>(100 + rank_),
              .access = "user alice"};
    s.payload = memory.span();
    s.mapping = memory.holder();
    return s;
  }

  Rank rank_;
  std::uint32_t members_;
  std::string group_;
  bool reads_ = false;
  FakeMemory base_;
  FakeMemory region_;
  FakeMemory page_;
  std::vector<std::pair<std::string, FakeMemory>> published_ = {};
};

/// All segments of some members.
inline std::vector<Segment> segments_of(const std::vector<const FakeMember*>& members) {
  std::vector<Segment> all;
  for (const FakeMember* member : members) {
    for (Segment& segment : member->segments()) all.push_back(std::move(segment));
  }
  return all;
}

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;
/// When the tests look.
inline constexpr std::uint64_t kNow = 1000 * kSecondNs;

inline std::optional<ProcessSample> asleep(pid_t) {
  return ProcessSample{.command = "worker", .state = 'S', .cpu_ticks = 10, .born_ticks = 7};
}

}  // namespace dunlin::top
