#include "fabric/layout_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dunlin {
namespace {

constexpr std::size_t kMostQuotedBytes = 120;

/// A part of a text: the name of the object that it describes, and the rest.
struct Item {
  std::string_view name;
  std::string_view rest;
  friend bool operator==(const Item&, const Item&) = default;

  /// Whether the part is a table's column: its line has an offset (Layout::text()).
  [[nodiscard]] bool is_column() const noexcept {
    return rest.find(" @") != std::string_view::npos;
  }
};

/// The lines of a text, and the parts of lines such as a multicast's, in which a comma and a blank
/// separate them.
std::vector<Item> items_of(std::string_view text) {
  constexpr std::string_view kComma = ", ";
  std::vector<Item> items;
  while (!text.empty()) {
    const std::size_t end = std::min({text.find('\n'), text.find(kComma), text.size()});
    const std::string_view part = text.substr(0, end);
    const std::size_t space = std::min(part.find(' '), part.size());
    items.push_back({part.substr(0, space), part.substr(std::min(space + 1, part.size()))});
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.size(), text.starts_with('\n') ? 1 : kComma.size()));
  }
  return items;
}

bool has(const std::vector<Item>& items, std::string_view name) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Item& item) { return item.name == name; });
}

std::string in_quotes(std::string_view text) {
  std::string printable(text.substr(0, kMostQuotedBytes));
  for (char& c : printable)
    if (c < ' ' || c > '~') c = '?';
  return "'" + printable + (text.size() > kMostQuotedBytes ? "..'" : "'");
}

std::string name_of(const Item& item) {
  return (item.is_column() ? "column " : "") + in_quotes(item.name);
}

/// How a message names an item: a column by its name, all else as it is.
std::string called(const Item& item) {
  if (item.is_column() || item.rest.empty()) return name_of(item);
  return in_quotes(std::string(item.name) + " " + std::string(item.rest));
}

}  // namespace

std::string layout_difference(std::string_view there, std::string_view here) {
  const std::vector<Item> theirs = items_of(there);
  const std::vector<Item> ours = items_of(here);
  const auto [their, our] = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end());
  if (their == theirs.end() && our == ours.end()) return "their texts are the same";
  if (their == theirs.end()) return called(*our) + " is only here";
  if (our == ours.end()) return called(*their) + " is only there";
  if (their->name == our->name) {
    std::string text;
    // Each option that differs is shown, but only the first column, as the others' offsets follow
    // from it.
    for (auto [one, other] = std::pair{their, our};
         one != theirs.end() && other != ours.end() && one->name == other->name; ++one, ++other) {
      if (*one == *other) continue;
      text += (text.empty() ? "" : ", ") + name_of(*one) + " is " + in_quotes(one->rest) +
              " there and " + in_quotes(other->rest) + " here";
      if (one->is_column()) break;
    }
    return text;
  }
  if (!has(ours, their->name)) {
    if (has(theirs, our->name)) return called(*their) + " is only there";
    return called(*their) + " there is " + called(*our) + " here";
  }
  if (!has(theirs, our->name)) return called(*our) + " is only here";
  return called(*their) + " there is where " + called(*our) + " is here: their order differs";
}

}  // namespace dunlin
