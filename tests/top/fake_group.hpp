#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/table/layout.hpp>

#include "fabric/counters/counters.hpp"
#include "fabric/mapping/base.hpp"
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
  static constexpr const char* kLabels = "table=load\ngeneration=1";

  FakeMember(Rank rank, std::uint32_t members, std::string group = "rack7")
      : rank_(rank),
        members_(members),
        group_(std::move(group)),
        base_(sizeof(mapping::Base)),
        region_(members * sizeof(FakeRow)),
        page_(sizeof(counter_page::Page)) {
    for (Rank i = 0; i < members; ++i) new (&row(i)) FakeRow;
    counters().magic = counter_page::kMagic;
    counters().version = counter_page::kVersion;
    for (Rank i = 0; i < members; ++i)
      set_state(i, i == rank ? RowState::own : RowState::connected);
  }

  FakeRow& row(std::size_t i) { return reinterpret_cast<FakeRow*>(region_.data())[i]; }
  FakeRow& mine() { return row(rank_); }
  mapping::Base& base() { return *reinterpret_cast<mapping::Base*>(base_.data()); }
  counter_page::Page& counters() { return *reinterpret_cast<counter_page::Page*>(page_.data()); }
  [[nodiscard]] const FakeMemory& page() const { return page_; }
  [[nodiscard]] const FakeMemory& region() const { return region_; }

  /// The words of the counter of that name and these labels, which is added if there is none.
  std::span<std::uint64_t> counter(const std::string& name, const std::string& labels,
                                   CounterKind kind = CounterKind::level, std::uint32_t words = 1) {
    for (counter_page::Record& d : counters().records) {
      if (d.serial == 0) {
        d = {.serial = ++added_,
             .first_word = words_,
             .words = words,
             .kind = static_cast<std::uint8_t>(kind),
             .name_bytes = static_cast<std::uint8_t>(name.size()),
             .labels_bytes = static_cast<std::uint8_t>(labels.size())};
        std::memcpy(d.name.data(), name.data(), name.size());
        std::memcpy(d.labels.data(), labels.data(), labels.size());
        words_ += words;
      }
      if (std::string_view(d.name.data(), d.name_bytes) == name &&
          std::string_view(d.labels.data(), d.labels_bytes) == labels)
        return std::span(counters().values).subspan(d.first_word, d.words);
    }
    return {};
  }
  std::uint64_t& total(const std::string& name, const std::string& labels) {
    return counter(name, labels, CounterKind::total).front();
  }
  std::uint64_t& level(const std::string& name, const std::string& labels) {
    return counter(name, labels).front();
  }

  std::uint64_t& passes() { return total("table.passes", kLabels); }
  std::uint64_t& pushes() { return total("table.pushes", kLabels); }
  std::uint64_t& since_ns(std::size_t i) { return of_rows("table.row_since_ns")[i]; }
  std::uint64_t& refreshed_ns(std::size_t i) { return of_rows("table.row_refreshed_ns")[i]; }
  void set_state(std::size_t i, RowState state) {
    of_rows("table.row_states")[i] = static_cast<std::uint64_t>(state);
  }
  /// Returns its firings.
  std::uint64_t& show_predicate(std::uint64_t id, const std::string& name, PredicateKind kind,
                                std::uint64_t firings, std::uint64_t first_pass = 1) {
    const auto words =
        counter("table.predicate", kLabels + ("\nid=" + std::to_string(id) + "\npredicate=" + name),
                CounterKind::level, 4);
    words[0] = static_cast<std::uint64_t>(kind);
    words[1] = 1;
    words[2] = first_pass;
    words[3] = firings;
    ++level("table.predicates", kLabels);
    return words[3];
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
        segment(mapping::MappingKind::published, std::string(counter_page::kRegion), "", page_)};
    return all;
  }
  void pull_instead_of_push() { reads_ = true; }

 private:
  std::span<std::uint64_t> of_rows(const std::string& name) {
    return counter(name, kLabels, CounterKind::level, members_);
  }
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
  std::uint64_t added_ = 0;
  std::uint32_t words_ = 0;
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

inline std::optional<ProcessSample> asleep(pid_t) {
  return ProcessSample{.command = "worker", .state = 'S', .cpu_ticks = 10, .born_ticks = 7};
}

}  // namespace dunlin::top
