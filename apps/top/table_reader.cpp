#include "top/table_reader.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <dunlin/error.hpp>

namespace dunlin::top {
namespace {

/// The line up to and including its end; `text` loses it.
std::string_view take_line(std::string_view& text) {
  const std::size_t bytes = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view line = text.substr(0, bytes);
  text.remove_prefix(bytes);
  return line;
}

std::optional<std::vector<Rank>> parse_ranks(std::string_view words) {
  std::vector<Rank> ranks;
  while (!words.empty()) {
    Rank rank = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), rank);
    if (error != std::errc{} || rank >= kMaxMembers || ranks.size() == kMaxMembers) return {};
    ranks.push_back(rank);
    words.remove_prefix(static_cast<std::size_t>(end - words.data()));
    if (!words.empty()) words.remove_prefix(1);
  }
  return ranks;
}

/// A region with the table that it is a part of.
struct Part {
  const Segment* region;
  std::size_t table;
};

class TableReader {
 public:
  TableReader(const CounterIndex& counters, std::uint64_t now_ns, std::vector<std::string>& remarks)
      : counters_(counters), now_ns_(now_ns), remarks_(remarks) {}

  std::vector<Table> read(std::span<const Segment* const> segments) {
    for (const Segment* segment : segments) {
      if (segment->info.kind == mapping::MappingKind::region) add_part(*segment);
    }
    std::vector<Table> tables = std::move(tables_);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      for (std::size_t row = 0; row < tables[i].ranks.size(); ++row) {
        tables[i].rows.push_back(read_row(tables[i], i, row));
      }
      if (const auto subgroup = multicast_of(tables[i].name, tables[i].layout))
        read_multicasts(tables[i], std::string(*subgroup));
    }
    return tables;
  }

 private:
  void add_part(const Segment& region) {
    std::optional<TableDescription> description = parse_description(region.info.layout_text);
    if (!description) return;
    const std::size_t stride = stride_of(description->layout);
    const auto address = reinterpret_cast<std::uintptr_t>(region.payload.data());
    if (address % kCacheLineBytes != 0 ||
        region.payload.size() / stride < description->ranks.size()) {
      return remark(region, "has not the size of its rows");
    }
    const std::size_t table = table_of(region.info, std::move(*description));
    parts_.push_back({&region, table});
    Node node{.rank = region.info.owner_rank, .incarnation = region.info.incarnation};
    node.counters = read_table_counters(
        counters_.of(node.incarnation, "table=" + region.info.region + "\ngeneration=" +
                                           std::to_string(region.info.generation)),
        tables_[table].ranks);
    add_node(tables_[table], std::move(node));
  }

  std::size_t table_of(const mapping::MappingInfo& info, TableDescription description) {
    const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) {
      return t.name == info.region && t.generation == info.generation &&
             t.layout_hash == info.layout_hash && t.layout == description.layout &&
             t.ranks == description.ranks;
    });
    if (found != tables_.end()) return static_cast<std::size_t>(found - tables_.begin());
    Table& table = tables_.emplace_back();
    table.name = info.region;
    table.generation = info.generation;
    table.layout_hash = info.layout_hash;
    table.refresh = description.refresh;
    table.layout = std::move(description.layout);
    table.ranks = std::move(description.ranks);
    return tables_.size() - 1;
  }

  static void add_node(Table& table, Node node) {
    if (node.counters && node.counters->made_ns != 0)
      table.made_ns = std::min(table.made_ns.value_or(UINT64_MAX), node.counters->made_ns);
    table.nodes.push_back(std::move(node));
    std::stable_sort(table.nodes.begin(), table.nodes.end(),
                     [](const Node& a, const Node& b) { return a.rank < b.rank; });
  }

  void read_multicasts(Table& table, const std::string& subgroup) const {
    for (Node& node : table.nodes)
      for (const Row& row : table.rows)
        if (row.rank == node.rank && row.read_from == node.rank)
          node.multicast = read_multicast(
              counters_.of(node.incarnation, "multicast=" + subgroup + "\ngeneration=" +
                                                 std::to_string(table.generation)),
              table.layout, row.values);
  }

  Row read_row(const Table& table, std::size_t table_index, std::size_t index) const {
    Row row{.row = index, .rank = table.ranks[index]};
    if (const Segment* source = source_of(row.rank, table_index)) {
      row.read_from = source->info.owner_rank;
      const std::byte* at = source->payload.data() + index * stride_of(table.layout);
      for (const Column& c : table.layout.columns) row.values.push_back(read_column(c, at));
    }
    for (const Node& node : table.nodes) {
      if (!node.counters || index >= node.counters->rows.size() || node.rank == row.rank) continue;
      row.seen.push_back({node.rank, node.counters->rows[index]});
    }
    row.age_ns = age_of(table, row);
    return row;
  }

  /// The owner's own memory; if it is gone, what it last wrote into someone else's.
  const Segment* source_of(Rank rank, std::size_t table) const {
    const Segment* any = nullptr;
    for (const Part& part : parts_) {
      if (part.table != table) continue;
      if (part.region->info.owner_rank == rank) return part.region;
      if (any == nullptr) any = part.region;
    }
    return any;
  }

  [[nodiscard]] std::optional<std::uint64_t> age_of(const Table& table, const Row& row) const {
    const std::uint64_t refreshed_ns =
        table.refresh == Refresh::writes ? last_push(table, row) : slowest_pull(table, row);
    if (refreshed_ns == 0) return std::nullopt;
    return now_ns_ - std::min(now_ns_, refreshed_ns);
  }

  static std::uint64_t last_push(const Table& table, const Row& row) {
    const Node* owner = table.node(row.rank);
    const bool known =
        owner != nullptr && owner->counters && row.row < owner->counters->rows.size();
    return known ? owner->counters->rows[row.row].refreshed_ns : 0;
  }

  static std::uint64_t slowest_pull(const Table& table, const Row& row) {
    std::uint64_t slowest_ns = UINT64_MAX;
    for (const Sighting& s : row.seen) {
      if (s.status.state > RowState::behind || is_lost_to(table, row.rank, s.by)) continue;
      slowest_ns = std::min(slowest_ns, s.status.refreshed_ns);
    }
    return slowest_ns == UINT64_MAX ? 0 : slowest_ns;
  }

  /// Whether a node holds another one for failed.
  static bool is_lost_to(const Table& table, Rank rank, Rank other) {
    const Node* node = table.node(rank);
    if (node == nullptr || !node->counters) return false;
    return std::any_of(
        node->counters->rows.begin(), node->counters->rows.end(),
        [&](const RowStatus& r) { return r.rank == other && r.state > RowState::behind; });
  }

  static std::size_t stride_of(const Layout& layout) {
    return round_up(layout.row_bytes, kCacheLineBytes);
  }

  void remark(const Segment& segment, std::string_view what) {
    remarks_.push_back(fmt::format("Memory '{}' of process {} (rank {} of group '{}') {}.",
                                   segment.info.region, segment.pid, segment.info.owner_rank,
                                   segment.info.group, what));
  }

  const CounterIndex& counters_;
  std::uint64_t now_ns_;
  std::vector<std::string>& remarks_;
  std::vector<Table> tables_;
  std::vector<Part> parts_;
};

}  // namespace

std::optional<TableDescription> parse_description(std::string_view text) {
  constexpr std::string_view kMembers = "members ";
  TableDescription description;
  std::string_view rest = text;
  for (bool row_line = false; !row_line;) {
    if (rest.empty()) return std::nullopt;
    row_line = take_line(rest).starts_with("row ");
  }
  try {
    description.layout = Layout::parse(text.substr(0, text.size() - rest.size()));
  } catch (const Error&) {
    return std::nullopt;
  }
  // The text behind a colon is for the members to compare (src/group/row_format.cpp).
  for (Column& column : description.layout.columns)
    column.name.resize(std::min(column.name.find(':', 1), column.name.size()));
  if (!rest.starts_with(kMembers)) return std::nullopt;
  std::string_view members = take_line(rest).substr(kMembers.size());
  if (members.ends_with('\n')) members.remove_suffix(1);
  std::optional<std::vector<Rank>> ranks = parse_ranks(members);
  if (!ranks || ranks->empty() || (rest != "refresh writes\n" && rest != "refresh reads\n")) {
    return std::nullopt;
  }
  description.ranks = std::move(*ranks);
  description.refresh = rest == "refresh reads\n" ? Refresh::reads : Refresh::writes;
  return description;
}

std::vector<Table> read_tables(std::span<const Segment* const> segments,
                               const CounterIndex& counters, std::uint64_t now_ns,
                               std::vector<std::string>& remarks) {
  return TableReader(counters, now_ns, remarks).read(segments);
}

}  // namespace dunlin::top
