#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "networks.hpp"
#include "routing/check.hpp"
#include "routing/events.hpp"
#include "routing/paths.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

/// One to four edits: bytes changed, removed, doubled, or exchanged for what parsers trip over.
std::string damaged(std::string text, std::mt19937_64& draw) {
  static constexpr std::string_view kTraps[] = {
      "-1", "1e309", "null", "\"", "{",  "[", "]", "}", ",", "\\u0000", "999999999999999999999",
      "<",  "&#0;",  "\xff", "->", "nan"};
  for (std::uint64_t edits = 1 + draw() % 4; edits > 0 && !text.empty(); --edits) {
    const std::size_t at = draw() % text.size();
    switch (draw() % 4) {
      case 0:
        text[at] = static_cast<char>(draw());
        break;
      case 1:
        text.erase(at, 1 + draw() % 20);
        break;
      case 2:
        text.insert(at, text.substr(draw() % text.size(), draw() % 30));
        break;
      default:
        text.insert(at, kTraps[draw() % std::size(kTraps)]);
    }
  }
  return text;
}

/// Either it is taken or refused with a sentence that names the file; nothing else may happen.
template <class Read>
void try_damaged(const std::string& text, const std::string& file, Read read) {
  std::mt19937_64 draw(text.size());
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 4'000; ++i) {
    const std::string input = damaged(text, draw);
    const std::string said = complaint([&] { read(input); });
    ++(said.empty() ? taken : refused);
    if (!said.empty()) {
      ASSERT_EQ(said.rfind(file + ":", 0), 0U) << said << "\nfor\n" << input;
      ASSERT_EQ(said.find('\n'), std::string::npos) << said;
    }
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 100);
}

TEST(Hostile, NodeLinkJsonIsTakenOrRefused) {
  try_damaged(kSquare, "net.json", [](const std::string& text) { (void)from_json(text); });
}

TEST(Hostile, GraphmlIsTakenOrRefused) {
  const std::string graphml = R"(<graphml>
 <key id="n" for="node" attr.name="label"/><key id="d" for="edge" attr.name="dist"/>
 <graph edgedefault="undirected">
  <node id="a"><data key="n">A</data></node><node id="b"/><node id="c"/>
  <edge source="a" target="b"><data key="d">1.5</data></edge>
  <edge source="b" target="c"><data key="d">2</data></edge>
  <edge source="c" target="a"><data key="d">0.25</data></edge>
 </graph></graphml>)";
  try_damaged(graphml, "net.graphml", [](const std::string& text) { (void)from_graphml(text); });
}

TEST(Hostile, ScriptsAreTakenOrRefused) {
  const Topology square = from_json(kSquare);
  try_damaged("cost a b 4\ndown b 7\n# lost\nup b 7 9\ncost \"New York\" -> d 0.5\n", "events.txt",
              [&](const std::string& text) { (void)parse_script("events.txt", text, square); });
}

TEST(Hostile, DeeplyNestedInputDoesNotExhaustTheStack) {
  std::string xml = "<graphml>";
  for (int i = 0; i < 200'000; ++i) xml += "<a>";
  EXPECT_NE(complaint([&] { return from_graphml(xml); }), "");
  for (int i = 0; i < 200'000; ++i) xml += "</a>";
  EXPECT_EQ(complaint([&] { return from_graphml(xml + "</graphml>"); }),
            "net.graphml:1: <graphml> holds no <graph>");
  const std::string json =
      R"({"x": )" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_EQ(complaint([&] { return from_json(json); }), "net.json: has no \"nodes\"");
}

/// All published networks that fit, if the data is there (`./run test` fetches it).
TEST(Topohub, NetworksAreReadAndRoutedRightly) {
  const char* folder = std::getenv("DUNLIN_TOPOHUB_DIR");
  if (folder == nullptr || !std::filesystem::exists(folder)) GTEST_SKIP() << "no topohub data here";
  int networks = 0;
  for (const char* collection : {"topozoo", "sndlib"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(folder) / collection)) {
      if (entry.path().extension() != ".json") continue;
      const Topology net = load_topology(entry.path().string(), {});
      EXPECT_EQ(net.cost_text, "length (dist)") << entry.path();
      const auto events = random_events(net, 20, 1);
      const auto costs = costs_after(net, events, events.size());
      std::vector<Installed> tables;
      for (RouterId r = 0; r < net.size(); ++r) {
        Paths paths(net, r);
        paths.compute(costs);
        tables.push_back({{paths.length().begin(), paths.length().end()},
                          {paths.next_hop().begin(), paths.next_hop().end()}});
      }
      const Verdict verdict = check(net, costs, tables);
      EXPECT_TRUE(verdict.agrees()) << entry.path() << ": " << verdict.differences.front();
      ++networks;
    }
  }
  EXPECT_GE(networks, 200);
}

}  // namespace
