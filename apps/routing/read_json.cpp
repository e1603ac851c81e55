#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "routing/raw_graph.hpp"
#include "routing/text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using nlohmann::json;

std::string line_and_column(std::string_view content, std::size_t byte) {
  const std::string_view before = content.substr(0, std::min(byte, content.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, before.size() - line_start + 1);
}

json parse(const std::string& file, const std::string& content) {
  try {
    return json::parse(content);
  } catch (const json::parse_error& error) {
    const std::size_t byte = error.byte == 0 ? 0 : error.byte - 1;
    if (byte >= content.size()) {
      throw BadInput(
          fmt::format("{}:{}: the file ends in the middle", file, line_and_column(content, byte)));
    }
    throw BadInput(fmt::format("{}:{}: not JSON from here on: {}", file,
                               line_and_column(content, byte),
                               in_quotes(std::string_view(content).substr(byte, 20))));
  } catch (const json::exception& error) {  // a number beyond every double
    throw BadInput(fmt::format("{}: not usable as JSON: {}", file, printable(error.what(), 200)));
  }
}

/// A value of the document together with where it stands.
class Place {
 public:
  Place(const json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  [[nodiscard]] const json& value() const { return *value_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has(std::string_view key) const { return value_->contains(key); }
  [[nodiscard]] Place at(std::string_view key) const {
    const auto found = value_->find(key);
    if (found == value_->end()) fail(fmt::format("has no {}", in_quotes(key)));
    return {*found, fmt::format("{}: {}", where_, printable(key))};
  }
  /// The list's i-th element; `key` is the list's own name.
  [[nodiscard]] Place element(std::string_view key, std::size_t i) const {
    return {value_->at(key).at(i), fmt::format("{}: {}[{}]", where_, key, i)};
  }
  void must_be(bool right, std::string_view what) const {
    if (!right) fail(fmt::format("must be {}, is {}", what, value_->type_name()));
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw BadInput(fmt::format("{}: {}", where_, what));
  }

 private:
  const json* value_;
  std::string where_;
};

std::string read_id(const Place& id) {
  id.must_be(id.value().is_string() || id.value().is_number_integer(), "a string or an integer");
  return id.value().is_string() ? id.value().get<std::string>() : id.value().dump();
}

std::string read_text(const Place& parent, std::string_view key) {
  if (!parent.has(key) || parent.at(key).value().is_null()) return {};
  const Place text = parent.at(key);
  text.must_be(text.value().is_string(), "a string");
  return text.value().get<std::string>();
}

bool read_flag(const Place& parent, std::string_view key) {
  if (!parent.has(key)) return false;
  parent.at(key).must_be(parent.at(key).value().is_boolean(), "true or false");
  return parent.at(key).value().get<bool>();
}

std::optional<Position> read_position(const Place& node) {
  if (!node.has("pos") || node.at("pos").value().is_null()) return {};
  const Place pos = node.at("pos");
  const json& pair = pos.value();
  const bool right =
      pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
  pos.must_be(right, "two numbers (longitude, latitude)");
  return Position{pair[0].get<double>(), pair[1].get<double>()};
}

std::optional<std::string> cost_key(const Place& link, const CostRule& rule) {
  if (rule.kind == CostRule::Kind::unit) return {};
  if (rule.kind == CostRule::Kind::attribute) {
    return link.has(rule.attribute) ? std::optional(rule.attribute) : std::nullopt;
  }
  for (const std::string_view key : kLengthAttributes) {
    if (link.has(key)) return std::string(key);
  }
  return {};
}

RawLink read_link(const Place& link, const CostRule& rule, std::string& cost_attribute) {
  link.must_be(link.value().is_object(), "an object");
  RawLink raw{.source = read_id(link.at("source")),
              .target = read_id(link.at("target")),
              .cost = {},
              .place = link.where(),
              .cost_place = {}};
  if (const auto key = cost_key(link, rule)) {
    const Place cost = link.at(*key);
    cost.must_be(cost.value().is_number(), "a number");
    raw.cost = cost.value().get<double>();
    raw.cost_place = cost.where();
    cost_attribute = *key;
  }
  return raw;
}

}  // namespace

RawGraph read_node_link_json(const std::string& file, const std::string& content,
                             const CostRule& rule) {
  const json document = parse(file, content);
  const Place top(document, file);
  top.must_be(document.is_object(), "an object with \"nodes\" and \"links\"");
  if (top.has("links") && top.has("edges")) top.fail("has both \"links\" and \"edges\"");
  const std::string_view links_key = top.has("edges") ? "edges" : "links";

  RawGraph raw;
  raw.file = file;
  raw.directed = read_flag(top, "directed");
  if (top.has("graph") && top.at("graph").value().is_object()) {
    raw.name = read_text(top.at("graph"), "name");
  }

  const Place nodes = top.at("nodes");
  nodes.must_be(nodes.value().is_array(), "a list");
  for (std::size_t i = 0; i < nodes.value().size(); ++i) {
    const Place node = top.element("nodes", i);
    node.must_be(node.value().is_object(), "an object");
    raw.nodes.push_back({.id = read_id(node.at("id")),
                         .name = read_text(node, "name"),
                         .position = read_position(node),
                         .place = node.where()});
  }

  const Place links = top.at(links_key);
  links.must_be(links.value().is_array(), "a list");
  for (std::size_t i = 0; i < links.value().size(); ++i) {
    raw.links.push_back(read_link(top.element(links_key, i), rule, raw.cost_attribute));
  }
  return raw;
}

}  // namespace dunlin::routing
