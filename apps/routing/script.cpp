#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "command.hpp"
#include "read_file.hpp"
#include "routing/events.hpp"
#include "routing/link_state.hpp"
#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::BadInput;
using app::in_quotes;
using app::printable;

/// The words of one line; quotes keep blanks together.
class Words {
 public:
  Words(std::string_view line, std::string place) : rest_(line), place_(std::move(place)) {
    while (next_start()) words_.push_back(take());
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return words_; }

 private:
  bool next_start() {
    const auto start = rest_.find_first_not_of(" \t\r");
    rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
    return !rest_.empty() && rest_.front() != '#';
  }
  std::string take() {
    const bool closed_by_quote = rest_.front() == '"';
    if (closed_by_quote) rest_.remove_prefix(1);
    auto end = rest_.find_first_of(closed_by_quote ? "\"" : " \t\r");
    if (closed_by_quote && end == std::string_view::npos) {
      throw BadInput(fmt::format("{}: a quotation mark is not closed", place_));
    }
    if (end == std::string_view::npos) end = rest_.size();
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end + (closed_by_quote ? 1 : 0));
    return word;
  }

  std::string_view rest_;
  std::string place_;
  std::vector<std::string> words_;
};

class Script {
 public:
  explicit Script(const Topology& topology) : topology_(topology), state_(topology) {
    for (RouterId r = 0; r < topology.size(); ++r) by_name_[topology.routers[r].label] = r;
    for (RouterId r = 0; r < topology.size(); ++r) by_name_[topology.routers[r].id] = r;
  }

  std::optional<LinkEvent> read(std::string_view line, const std::string& place) {
    const Words split(line, place);
    std::vector<std::string> words = split.all();
    if (words.empty()) return {};
    const bool one_direction = words.size() > 2 && words[2] == "->";
    if (one_direction) words.erase(words.begin() + 2);
    const EventKind kind = read_kind(words[0], place);
    const std::size_t most = kind == EventKind::down ? 3 : 4;
    const std::size_t least = kind == EventKind::cost ? 4 : 3;
    if (words.size() < least || words.size() > most) {
      throw BadInput(fmt::format("{}: expected {}", place, syntax(kind)));
    }
    const auto arcs = find_arcs(words[1], words[2], one_direction, place);
    check_state(kind, arcs, place);
    return state_.change(kind, arcs, new_cost(kind, words, arcs, place));
  }

 private:
  static EventKind read_kind(const std::string& word, const std::string& place) {
    if (word == "cost") return EventKind::cost;
    if (word == "down") return EventKind::down;
    if (word == "up") return EventKind::up;
    throw BadInput(
        fmt::format("{}: {} is no event; there are cost, down and up", place, in_quotes(word)));
  }
  static std::string_view syntax(EventKind kind) {
    switch (kind) {
      case EventKind::cost:
        return "cost ROUTER ROUTER COST";
      case EventKind::down:
        return "down ROUTER ROUTER";
      case EventKind::up:
        break;
    }
    return "up ROUTER ROUTER [COST]";
  }
  [[nodiscard]] RouterId find_router(const std::string& name, const std::string& place) const {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    const std::string bearers = ids_of(name);
    if (bearers.empty()) {
      throw BadInput(
          fmt::format("{}: there is no router {} in {}", place, in_quotes(name), topology_.source));
    }
    throw BadInput(fmt::format("{}: {} is the name of several routers; use an id: {}", place,
                               in_quotes(name), bearers));
  }
  /// The ids of the routers that share the name.
  [[nodiscard]] std::string ids_of(const std::string& name) const {
    std::string ids;
    for (const Site& router : topology_.routers) {
      if (!name.empty() && router.name == name) {
        ids += (ids.empty() ? "" : ", ") + in_quotes(router.id);
      }
    }
    return printable(ids, 200);
  }
  [[nodiscard]] std::optional<ArcId> find_arc(RouterId tail, RouterId head) const {
    for (ArcId arc = topology_.first_arc[tail]; arc < topology_.first_arc[tail + 1U]; ++arc) {
      if (topology_.arcs[arc].head == head) return arc;
    }
    return {};
  }
  [[nodiscard]] std::vector<ArcId> find_arcs(const std::string& from, const std::string& to,
                                             bool one_direction, const std::string& place) const {
    const RouterId tail = find_router(from, place);
    const RouterId head = find_router(to, place);
    const auto arc = find_arc(tail, head);
    if (!arc) {
      throw BadInput(fmt::format("{}: no link leads from {} to {}", place,
                                 topology_.routers[tail].label, topology_.routers[head].label));
    }
    std::vector<ArcId> arcs = {*arc};
    const LinkId link = topology_.arcs[*arc].link;
    if (!one_direction && !topology_.links[link].one_way) arcs.push_back(*find_arc(head, tail));
    return arcs;
  }
  void check_state(EventKind kind, const std::vector<ArcId>& arcs, const std::string& place) const {
    for (const ArcId arc : arcs) {
      const auto& tail = topology_.routers[topology_.arcs[arc].tail].label;
      const auto& head = topology_.routers[topology_.arcs[arc].head].label;
      if (kind == EventKind::up && !state_.lost(arc)) {
        throw BadInput(fmt::format("{}: the link from {} to {} is not down", place, tail, head));
      }
      if (kind != EventKind::up && state_.lost(arc)) {
        throw BadInput(fmt::format("{}: the link from {} to {} is down", place, tail, head));
      }
    }
  }
  [[nodiscard]] Cost new_cost(EventKind kind, const std::vector<std::string>& words,
                              const std::vector<ArcId>& arcs, const std::string& place) const {
    if (kind == EventKind::down) return kNoLink;
    if (words.size() == 4) return cost_from_text(words[3], place);
    return state_.cost_before_loss(arcs.front());
  }

  const Topology& topology_;
  LinkState state_;
  std::unordered_map<std::string, RouterId> by_name_;
};

}  // namespace

std::vector<LinkEvent> parse_script(const std::string& file, const std::string& content,
                                    const Topology& topology) {
  Script script(topology);
  std::vector<LinkEvent> events;
  std::size_t line_number = 0;
  std::string_view rest = content;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string place = fmt::format("{}:{}", file, ++line_number);
    if (auto event = script.read(rest.substr(0, end), place)) events.push_back(std::move(*event));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (events.size() > kMaxEvents) {
      throw BadInput(fmt::format("{}: more than {} events (kMaxEvents)", place, kMaxEvents));
    }
  }
  return events;
}

std::vector<LinkEvent> read_script(const std::string& path, const Topology& topology) {
  return parse_script(printable(path, 300), app::read_file(path), topology);
}

}  // namespace dunlin::routing
