#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "routing/raw_graph.hpp"
#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using app::in_quotes;
using app::printable;
using nlohmann::json;

std::string line_and_column(std::string_view content, std::size_t byte) {
  const std::string_view before = content.substr(0, std::min(byte, content.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, before.size() - line_start + 1);
}

/// Builds the document, and refuses what nlohmann's own builder would take or say without a place:
/// keys that stand twice, of which the last would win, and numbers beyond every double.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const std::string& file, std::string_view content) : file_(file), content_(content) {}
  [[nodiscard]] json document() && { return std::move(document_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in text
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (open_.back().value->contains(key)) {
      throw BadInput(fmt::format("{}: {} stands twice in one object", place(), in_quotes(key)));
    }
    open_.back().key = key;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      throw BadInput(fmt::format("{}: {} is beyond every number", next_place(), printable(token)));
    }
    const std::size_t byte = position == 0 ? 0 : position - 1;
    const std::string where = file_ + ":" + line_and_column(content_, byte);
    if (byte >= content_.size()) throw BadInput(where + ": the file ends in the middle");
    throw BadInput(where + ": not JSON from here on: " + in_quotes(content_.substr(byte, 20)));
  }

 private:
  /// An object or list that is not closed yet.
  struct Open {
    json* value;
    std::string key;  // in an object: the latest key
  };

  json* put(json value) {
    if (open_.empty()) return &(document_ = std::move(value));
    json& parent = *open_.back().value;
    if (parent.is_object()) return &(parent[open_.back().key] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool add(json value) {
    put(std::move(value));
    return true;
  }
  bool open(json value) {
    open_.push_back({put(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  /// "net.json: nodes[3]": of the innermost that is open.
  [[nodiscard]] std::string place() const {
    std::string text = file_;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) text += step(open_[i], 1);
    return printable(text, 300);
  }
  /// The place of the value that comes next.
  [[nodiscard]] std::string next_place() const {
    return open_.empty() ? file_ : place() + step(open_.back(), 0);
  }
  /// The step from an open value to its last element, or to the next one.
  [[nodiscard]] static std::string step(const Open& at, std::size_t back) {
    if (at.value->is_object()) return ": " + printable(at.key);
    return fmt::format("[{}]", at.value->size() - back);
  }

  const std::string& file_;
  std::string_view content_;
  json document_;
  std::vector<Open> open_;
};

json parse(const std::string& file, const std::string& content) {
  Builder builder(file, content);
  json::sax_parse(content, &builder);
  return std::move(builder).document();
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
