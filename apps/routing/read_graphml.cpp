#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pugixml.hpp>

#include "command.hpp"
#include "routing/raw_graph.hpp"
#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using app::in_quotes;
using app::printable;

/// The XML document with its text, to say on which line something stands.
class Document {
 public:
  Document(std::string file, const std::string& content)
      : file_(std::move(file)), content_(content) {
    const auto result =
        tree_.load_buffer(content.data(), content.size(), pugi::parse_default, pugi::encoding_auto);
    if (!result) {
      throw BadInput(fmt::format("{}: not XML: {}", place(result.offset), result.description()));
    }
  }

  [[nodiscard]] pugi::xml_node root() const { return tree_.document_element(); }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string place(std::ptrdiff_t offset) const {
    const auto end = std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(content_));
    const auto line = std::count(content_.begin(), content_.begin() + end, '\n') + 1;
    return fmt::format("{}:{}", file_, line);
  }
  [[nodiscard]] std::string place(pugi::xml_node node) const { return place(node.offset_debug()); }
  [[noreturn]] void fail(pugi::xml_node node, std::string_view what) const {
    throw BadInput(fmt::format("{}: <{}> {}", place(node), printable(node.name()), what));
  }
  [[nodiscard]] std::string require(pugi::xml_node node, const char* attribute) const {
    const auto found = node.attribute(attribute);
    if (!found) fail(node, fmt::format("has no {}", attribute));
    return found.value();
  }

 private:
  std::string file_;
  const std::string& content_;
  pugi::xml_document tree_;
};

bool named(pugi::xml_node node, const char* name) {  // whatever the namespace's prefix
  const char* colon = std::strchr(node.name(), ':');
  return std::strcmp(colon != nullptr ? colon + 1 : node.name(), name) == 0;
}

/// The first child of that name, whatever its prefix; null: there is none.
pugi::xml_node child(pugi::xml_node parent, const char* name) {
  return parent.find_child([name](pugi::xml_node node) { return named(node, name); });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

/// The declarations of the <key> elements: the name of each short key, and the elements that may
/// have it.
class Keys {
 public:
  Keys(const Document& document) {
    for (const auto& node : document.root()) {
      if (!named(node, "key")) continue;
      const std::string id = document.require(node, "id");
      const std::string name = node.attribute("attr.name").as_string(id.c_str());
      const std::string domain = node.attribute("for").as_string(kAll);
      if (std::find(kDomains.begin(), kDomains.end(), domain) == kDomains.end())
        document.fail(node, fmt::format("is for {}; a key is for one of {}", in_quotes(domain),
                                        fmt::join(kDomains, ", ")));
      const auto [key, added] = keys_.try_emplace(id, Key{.name = lower(name),
                                                          .domain = domain,
                                                          .place = document.place(node),
                                                          .default_value = child(node, "default")});
      if (!added)
        document.fail(node, fmt::format("declares key {}, which {} has declared already",
                                        in_quotes(id), key->second.place));
    }
  }
  /// The <data> children of an element, and the <default> of each other key that the element may
  /// have, by lower-case attribute name.
  [[nodiscard]] std::map<std::string, pugi::xml_node> data(const Document& document,
                                                           pugi::xml_node element) const {
    std::map<std::string, pugi::xml_node> found;
    std::map<std::string, pugi::xml_node> by_id;
    for (const auto& child : element) {
      if (!named(child, "data")) continue;
      const std::string id = document.require(child, "key");
      const auto [first, added] = by_id.try_emplace(id, child);
      if (!added)
        document.fail(child, fmt::format("has key {} like {}: an element has each key once",
                                         in_quotes(id), document.place(first->second)));
      found[find(document, element, child, id).name] = child;
    }
    for (const auto& [id, key] : keys_)
      if (key.default_value && fits(key, element)) found.try_emplace(key.name, key.default_value);
    return found;
  }

 private:
  struct Key {
    std::string name;
    std::string domain;  // the kind of element that may have it
    std::string place;
    pugi::xml_node default_value;
  };

  static bool fits(const Key& key, pugi::xml_node element) {
    return key.domain == kAll || named(element, key.domain.c_str());
  }
  const Key& find(const Document& document, pugi::xml_node element, pugi::xml_node data,
                  const std::string& id) const {
    const auto key = keys_.find(id);
    if (key == keys_.end())
      document.fail(data, fmt::format("has key {}, which no <key> declares", in_quotes(id)));
    if (!fits(key->second, element))
      document.fail(data, fmt::format("has key {}, which {} declares for {} elements only",
                                      in_quotes(id), key->second.place, key->second.domain));
    return key->second;
  }

  static constexpr const char* kAll = "all";
  // As GraphML's schema has them.
  static constexpr std::array<std::string_view, 8> kDomains{
      kAll, "graphml", "graph", "node", "edge", "hyperedge", "port", "endpoint"};
  std::map<std::string, Key> keys_;
};

using Data = std::map<std::string, pugi::xml_node>;

double read_number(const Document& document, pugi::xml_node data) {
  const std::string text = trimmed(data.text().get());
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    document.fail(data, fmt::format("must be a number, is {}", in_quotes(text)));
  }
  return value;
}

std::optional<Position> read_position(const Document& document, const Data& data) {
  const auto longitude = data.find("longitude");
  const auto latitude = data.find("latitude");
  if (longitude == data.end() || latitude == data.end()) return {};
  return Position{read_number(document, longitude->second),
                  read_number(document, latitude->second)};
}

std::string read_text(const Data& data, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto found = data.find(name); found != data.end()) {
      return trimmed(found->second.text().get());
    }
  }
  return {};
}

std::optional<std::string> cost_key(const Data& data, const CostRule& rule) {
  if (rule.kind == CostRule::Kind::unit) return {};
  if (rule.kind == CostRule::Kind::attribute) {
    const std::string key = lower(rule.attribute);
    return data.contains(key) ? std::optional(key) : std::nullopt;
  }
  for (const std::string_view key : kLengthAttributes) {
    if (data.contains(std::string(key))) return std::string(key);
  }
  return {};
}

void read_edge(const Document& document, const Keys& keys, pugi::xml_node edge,
               const CostRule& rule, RawGraph& raw) {
  const auto own = edge.attribute("directed");
  if (own && own.as_bool() != raw.directed) {
    document.fail(edge, "is directed other than its graph; mixed graphs are not supported");
  }
  const Data data = keys.data(document, edge);
  RawLink link{.source = document.require(edge, "source"),
               .target = document.require(edge, "target"),
               .cost = {},
               .place = document.place(edge) + ": <edge>",
               .cost_place = {}};
  if (const auto key = cost_key(data, rule)) {
    link.cost = read_number(document, data.at(*key));
    link.cost_place = fmt::format("{}: {}", document.place(data.at(*key)), printable(*key));
    raw.cost_attribute = *key;
  }
  raw.links.push_back(std::move(link));
}

void read_node(const Document& document, const Keys& keys, pugi::xml_node node, RawGraph& raw) {
  for (const auto& child : node) {
    if (named(child, "graph"))
      document.fail(node, "holds a graph; nested graphs are not supported");
  }
  const Data data = keys.data(document, node);
  raw.nodes.push_back({.id = document.require(node, "id"),
                       .name = read_text(data, {"label", "name"}),
                       .position = read_position(document, data),
                       .place = document.place(node) + ": <node>"});
}

}  // namespace

RawGraph read_graphml(const std::string& file, const std::string& content, const CostRule& rule) {
  const Document document(file, content);
  if (!named(document.root(), "graphml")) {
    document.fail(document.root(), "is not GraphML's outermost element, <graphml>");
  }
  const Keys keys(document);
  pugi::xml_node graph;
  for (const auto& node : document.root()) {
    if (!named(node, "graph")) continue;
    if (graph) document.fail(node, "is the file's second graph; one is supported");
    graph = node;
  }
  if (!graph) document.fail(document.root(), "holds no <graph>");

  RawGraph raw;
  raw.file = file;
  const std::string direction = graph.attribute("edgedefault").as_string("undirected");
  if (direction != "directed" && direction != "undirected") {
    document.fail(graph, fmt::format("has edgedefault {}", in_quotes(direction)));
  }
  raw.directed = direction == "directed";
  raw.name = read_text(keys.data(document, graph), {"network", "label", "name"});
  for (const auto& element : graph) {
    if (named(element, "node")) read_node(document, keys, element, raw);
    if (named(element, "edge")) read_edge(document, keys, element, rule, raw);
    if (named(element, "hyperedge")) document.fail(element, "is not supported");
  }
  return raw;
}

}  // namespace dunlin::routing
