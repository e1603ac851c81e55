#include <gtest/gtest.h>

#include "networks.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

std::string complaint_about(const std::string& text, const CostRule& rule = {}) {
  return complaint([&] { return from_json(text, rule); });
}

/// Two routers and this link.
std::string with_link(const std::string& link) {
  return R"({"nodes": [{"id": 0}, {"id": 1}], "edges": [)" + link + "]}";
}

TEST(TopologyJson, ReadsRoutersLinksAndLengths) {
  const Topology square = from_json(kSquare);
  EXPECT_EQ(square.name, "Square");
  ASSERT_EQ(square.size(), 4U);
  EXPECT_EQ(square.routers[0].label, "a");
  EXPECT_EQ(square.routers[2].label, "New York");
  ASSERT_EQ(square.links.size(), 4U);
  EXPECT_EQ(square.links[0].cost, 1'500'000U);
  EXPECT_EQ(square.cost_text, "length (dist)");
  EXPECT_EQ(square.link_label(1), "Bern – New York");
  EXPECT_TRUE(square.notes.empty());
}

TEST(TopologyJson, NumbersArcsByTheirTailAndSlot) {
  const Topology square = from_json(kSquare);
  ASSERT_EQ(square.arcs.size(), 8U);
  EXPECT_EQ(square.first_arc, (std::vector<ArcId>{0, 2, 4, 6, 8}));
  for (ArcId i = 0; i < square.arcs.size(); ++i) {
    const Arc& arc = square.arcs[i];
    EXPECT_EQ(square.first_arc[arc.tail] + arc.slot, i);
    const Link& link = square.links[arc.link];
    EXPECT_TRUE((arc.tail == link.a && arc.head == link.b) ||
                (arc.tail == link.b && arc.head == link.a));
  }
}

TEST(TopologyJson, TakesUnitCostsOrAnyAttribute) {
  EXPECT_EQ(from_json(kSquare, CostRule::parse("unit")).links[3].cost, kCostUnit);
  const std::string text = with_link(R"({"source": 0, "target": 1, "delay": 0.25})");
  EXPECT_EQ(from_json(text, CostRule::parse("delay")).links[0].cost, 250'000U);
  EXPECT_EQ(from_json(text).cost_text, "unit (not every link has a length)");
  EXPECT_EQ(complaint_about(text, CostRule::parse("length")),
            "net.json: edges[0]: has no length (\"dist\", \"length\" or \"distance\"); try --cost "
            "unit");
  EXPECT_EQ(complaint_about(text, CostRule::parse("metric")),
            "net.json: edges[0]: has no \"metric\" to take its cost from (--cost)");
}

TEST(TopologyJson, NamesTheRouterWhosePositionGivesNoLength) {
  const auto with_third = [](const std::string& third) {
    return R"({"nodes": [{"id": "a", "pos": [179.9, -17]}, {"id": "b", "pos": [-172, -13.8]},
                         {"id": "x")" +
           third +
           R"(}], "links": [{"source": "a", "target": "b"}, {"source": "b", "target": "x"}]})";
  };
  const CostRule by_length = CostRule::parse("length");
  EXPECT_EQ(complaint_about(with_third(R"(, "pos": [200, -95])"), by_length),
            "net.json: nodes[2]: router \"x\": its position (200, -95) is no longitude and "
            "latitude, so that lengths cannot be computed from the coordinates; try --cost unit");
  EXPECT_EQ(complaint_about(with_third(""), by_length),
            "net.json: nodes[2]: router \"x\": it has no position, so that lengths cannot be "
            "computed from the coordinates; try --cost unit");
  EXPECT_EQ(from_json(with_third(R"(, "pos": [180, -90])"), by_length).cost_text,
            "length (km, from the coordinates)");
}

TEST(TopologyJson, NamesLineAndColumnOfWhatIsNotJson) {
  EXPECT_EQ(complaint_about("{\"nodes\": [\n  {\"id\": 1},\n  oops"),
            "net.json:3:3: not JSON from here on: \"oops\"");
  EXPECT_EQ(complaint_about("{\"nodes\": ["), "net.json:1:12: the file ends in the middle");
  EXPECT_EQ(complaint_about("[1, 1e999]"), "net.json[1]: 1e999 is beyond every number");
  EXPECT_EQ(complaint_about("-1e999"), "net.json: -1e999 is beyond every number");
  EXPECT_NE(complaint_about("{\"nodes\": \"\xff\"}"), "");
  EXPECT_NE(complaint_about(std::string(200'000, '[')), "");
}

TEST(TopologyJson, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(complaint_about(R"({"nodes": [], "links": [], "nodes": [{"id": 1}]})"),
            "net.json: \"nodes\" stands twice in one object");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 0}, {"id": 1, "pos": {}, "id": 2}]})"),
            "net.json: nodes[1]: \"id\" stands twice in one object");
}

TEST(TopologyJson, NamesTheFieldThatIsMissingOrOfTheWrongKind) {
  EXPECT_EQ(complaint_about("[]"),
            "net.json: must be an object with \"nodes\" and \"links\", is array");
  EXPECT_EQ(complaint_about("{}"), "net.json: has no \"nodes\"");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 1}]})"), "net.json: has no \"links\"");
  EXPECT_EQ(complaint_about(R"({"nodes": [], "links": [], "edges": []})"),
            "net.json: has both \"links\" and \"edges\"");
  EXPECT_EQ(complaint_about(R"({"nodes": 3})"), "net.json: nodes: must be a list, is number");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 1}, 5]})"),
            "net.json: nodes[1]: must be an object, is number");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"name": "x"}]})"), "net.json: nodes[0]: has no \"id\"");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 1.5}]})"),
            "net.json: nodes[0]: id: must be a string or an integer, is number");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 1, "pos": [1]}]})"),
            "net.json: nodes[0]: pos: must be two numbers (longitude, latitude), is array");
  EXPECT_EQ(complaint_about(with_link(R"({"source": 0})")),
            "net.json: edges[0]: has no \"target\"");
  EXPECT_EQ(complaint_about(R"({"directed": "no", "nodes": []})"),
            "net.json: directed: must be true or false, is string");
}

TEST(TopologyJson, RefusesCostsThatNoLinkCanHave) {
  const auto cost = [](const std::string& dist) {
    return complaint_about(with_link(R"({"source": 0, "target": 1, "dist": )" + dist + "}"));
  };
  EXPECT_EQ(cost("-3"), "net.json: edges[0]: dist: a cost cannot be negative (-3)");
  EXPECT_EQ(cost("1e300"),
            "net.json: edges[0]: dist: 1e+300 is more than the largest cost, "
            "100000000");
  EXPECT_EQ(cost("1e-9"),
            "net.json: edges[0]: dist: 1e-09 is less than the smallest cost but 0, "
            "0.000001");
  EXPECT_EQ(cost("\"12\""), "net.json: edges[0]: dist: must be a number, is string");
  EXPECT_EQ(cost("null"), "net.json: edges[0]: dist: must be a number, is null");
  EXPECT_NE(cost("NaN"), "");
  EXPECT_EQ(cost("1e999"), "net.json: edges[0]: dist: 1e999 is beyond every number");
  EXPECT_EQ(cost("0"), "");
}

TEST(TopologyJson, RefusesAWrongLengthEvenIfItIsNotUsed) {
  const std::string text = R"({"nodes": [{"id": 0}, {"id": 1}], "links": [
      {"source": 0, "target": 1, "dist": -1}, {"source": 0, "target": 1}]})";
  EXPECT_EQ(complaint_about(text), "net.json: links[0]: dist: a cost cannot be negative (-1)");
}

TEST(TopologyJson, NamesRoutersThatDoNotExistOrExistTwice) {
  EXPECT_EQ(complaint_about(with_link(R"({"source": 0, "target": "Rome"})")),
            "net.json: edges[0]: target: there is no router \"Rome\"");
  EXPECT_EQ(complaint_about(
                R"({"nodes": [{"id": 0}, {"id": "0"}], "links": [{"source": 0, "target": 0}]})"),
            "net.json: nodes[1]: id \"0\" is taken by net.json: nodes[0]");
}

TEST(TopologyJson, RefusesNetworksWithNothingToRoute) {
  EXPECT_EQ(complaint_about(R"({"nodes": [], "links": []})"), "net.json: has no routers");
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": 0}, {"id": 1}], "links": []})"),
            "net.json: has 2 routers and 0 links; there is nothing to route");
}

TEST(TopologyJson, RefusesADisconnectedNetworkAndNamesWhoIsCutOff) {
  EXPECT_EQ(complaint_about(R"({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}],
      "links": [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}]})"),
            "net.json: the network is not connected: no path leads from a to c (nor for 1 more "
            "routers)");
  EXPECT_EQ(complaint_about(R"({"directed": true, "nodes": [{"id": "a"}, {"id": "b"}],
      "links": [{"source": "a", "target": "b"}]})"),
            "net.json: the network is not connected: no path leads from b to a");
}

TEST(TopologyJson, KeepsTheCheapestOfParallelLinksAndSaysSo) {
  const Topology net = from_json(with_link(R"({"source": 0, "target": 1, "dist": 5},
      {"source": 1, "target": 0, "dist": 2}, {"source": 1, "target": 1, "dist": 2})"));
  ASSERT_EQ(net.links.size(), 1U);
  EXPECT_EQ(net.links[0].cost, 2 * kCostUnit);
  EXPECT_EQ(net.notes,
            (std::vector<std::string>{
                "net.json: edges[1]: a second link between 1 and 0; the cheaper of 5 and "
                "2 is kept",
                "net.json: edges[2]: a link from 1 to itself, left out"}));
}

TEST(TopologyJson, KeepsBothDirectionsOfADirectedGraph) {
  const Topology net = from_json(R"({"directed": true, "nodes": [{"id": 0}, {"id": 1}],
      "links": [{"source": 0, "target": 1, "dist": 5}, {"source": 1, "target": 0, "dist": 2}]})");
  ASSERT_EQ(net.arcs.size(), 2U);
  EXPECT_EQ(net.arc_costs(), (std::vector<Cost>{5 * kCostUnit, 2 * kCostUnit}));
}

TEST(TopologyJson, RefusesMoreRoutersThanALimitThatItQuotes) {
  std::string nodes;
  for (int i = 0; i < 300; ++i)
    nodes += (i > 0 ? "," : "") + ("{\"id\":" + std::to_string(i) + "}");
  EXPECT_EQ(
      complaint_about("{\"nodes\": [" + nodes + "], \"links\": [{\"source\":0,\"target\":1}]}"),
      "net.json: has 300 routers, the most is 255 (kMaxRouters)");
}

TEST(TopologyJson, TellsRoutersOfTheSameNameApartAndCleansWhatATerminalWouldObey) {
  const Topology net = from_json(R"({"nodes": [{"id": 0, "name": "X"}, {"id": 1, "name": "X"},
      {"id": 2, "name": "a\u001b[2Jb"}], "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}]})");
  EXPECT_EQ(net.routers[0].label, "X #0");
  EXPECT_EQ(net.routers[1].label, "X #1");
  EXPECT_EQ(net.routers[2].label, "a?[2Jb");
}

constexpr const char* kGraphml = R"(<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Longitude" attr.type="double" for="node" id="d1"/>
  <key attr.name="Latitude" attr.type="double" for="node" id="d2"/>
  <key attr.name="label" attr.type="string" for="node" id="d3"/>
  <key attr.name="metric" attr.type="int" for="edge" id="d4"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">2.35</data><data key="d2">48.86</data><data key="d3">Paris</data></node>
    <node id="1"><data key="d1">-0.13</data><data key="d2">51.51</data><data key="d3">London</data></node>
    <edge source="0" target="1"><data key="d4">7</data></edge>
  </graph>
</graphml>)";

TEST(TopologyGraphml, TakesLengthsFromCoordinatesIfThereAreNoOthers) {
  const Topology net = from_graphml(kGraphml);
  EXPECT_EQ(net.cost_text, "length (km, from the coordinates)");
  EXPECT_NEAR(to_double(net.links[0].cost), 344, 2);  // Paris to London
  EXPECT_TRUE(net.geographic);
  EXPECT_EQ(net.link_label(0), "Paris – London");
}

TEST(TopologyGraphml, TakesAnyAttributeAsCost) {
  EXPECT_EQ(from_graphml(kGraphml, CostRule::parse("metric")).links[0].cost, 7 * kCostUnit);
}

/// b-c has the default cost.
std::string with_default(const std::string& name, const std::string& value) {
  return R"(<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="w" for="edge" attr.name=")" +
         name + R"(" attr.type="double"><default>)" + value + R"(</default></key>
<key id="x" for="node" attr.name="longitude"><default>1</default></key>
<key id="y" for="node" attr.name="latitude"><default>2</default></key>
<graph edgedefault="undirected"><node id="a"/><node id="b"><data key="x">3</data></node><node id="c"/>
<edge source="a" target="b"><data key="w">5</data></edge>
<edge source="b" target="c"/>
<edge source="a" target="c"><data key="w">10</data></edge></graph></graphml>)";
}

TEST(TopologyGraphml, TakesTheDefaultOfAKeyThatAnElementLacks) {
  for (const auto& [name, rule] :
       {std::pair{"dist", CostRule{}}, std::pair{"weight", CostRule::parse("weight")}}) {
    const Topology net = from_graphml(with_default(name, "1.0"), rule);
    ASSERT_EQ(net.links.size(), 3U);
    EXPECT_EQ(net.links[0].cost, 5 * kCostUnit);
    EXPECT_EQ(net.links[1].cost, kCostUnit);
    EXPECT_EQ(net.links[2].cost, 10 * kCostUnit);
    ASSERT_TRUE(net.routers[0].position && net.routers[1].position);
    EXPECT_EQ(net.routers[0].position->x, 1);
    EXPECT_EQ(net.routers[1].position->x, 3);
    EXPECT_EQ(net.routers[1].position->y, 2);
  }
  EXPECT_EQ(complaint([&] { return from_graphml(with_default("dist", "-1")); }),
            "net.graphml:2: dist: a cost cannot be negative (-1)");
  EXPECT_EQ(complaint([&] { return from_graphml(with_default("dist", "far")); }),
            "net.graphml:2: <default> must be a number, is \"far\"");
}

TEST(TopologyGraphml, NamesTheLineOfWhatIsWrong) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kGraphml;
    text.replace(text.find(from), from.size(), to);
    return complaint([&] { return from_graphml(text, CostRule::parse("metric")); });
  };
  EXPECT_EQ(with("target=\"1\"", "target=\"9\""),
            "net.graphml:10: <edge>: target: there is no router \"9\"");
  EXPECT_EQ(with("target=\"1\"", ""), "net.graphml:10: <edge> has no target");
  EXPECT_EQ(with(">7<", ">-7<"), "net.graphml:10: metric: a cost cannot be negative (-7)");
  EXPECT_EQ(with(">7<", ">nan<"),
            "net.graphml:10: metric: a cost must be a finite number, this is nan");
  EXPECT_EQ(with(">7<", ">seven<"), "net.graphml:10: <data> must be a number, is \"seven\"");
  EXPECT_EQ(with("key=\"d4\"", "key=\"zz\""),
            "net.graphml:10: <data> has key \"zz\", which no <key> declares");
  EXPECT_EQ(with(">48.86<", ">1e12<"),
            "net.graphml:8: <node>: its position (2.35, 1000000000000) is out of range");
  EXPECT_EQ(with("\"undirected\"", "\"maybe\""),
            "net.graphml:7: <graph> has edgedefault \"maybe\"");
  EXPECT_EQ(with("</graphml>", ""), "net.graphml:11: not XML: Start-end tags mismatch");
}

TEST(TopologyGraphml, RefusesAKeyThatIsDeclaredOrGivenTwice) {
  const auto with = [](const std::string& before, const std::string& more) {
    std::string text = kGraphml;
    text.insert(text.find(before), more);
    return complaint([&] { return from_graphml(text); });
  };
  EXPECT_EQ(with("  <graph ", "<key attr.name=\"delay\" for=\"edge\" id=\"d4\"/>\n"),
            "net.graphml:7: <key> declares key \"d4\", which net.graphml:6 has declared already");
  EXPECT_EQ(
      with("</edge>", "\n<data key=\"d4\">8</data>"),
      "net.graphml:11: <data> has key \"d4\" like net.graphml:10: an element has each key once");
}

TEST(TopologyGraphml, RefusesAKeyOfAnotherKindOfElement) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kGraphml;
    text.replace(text.find(from), from.size(), to);
    return complaint([&] { return from_graphml(text); });
  };
  EXPECT_EQ(with("<data key=\"d4\">", "<data key=\"d1\">"),
            "net.graphml:10: <data> has key \"d1\", which net.graphml:3 declares for node elements "
            "only");
  EXPECT_EQ(with("for=\"edge\"", "for=\"nodes\""),
            "net.graphml:6: <key> is for \"nodes\"; a key is for one of all, graphml, graph, node, "
            "edge, hyperedge, port, endpoint");
  EXPECT_EQ(with("for=\"edge\"", "for=\"all\""), "");
  EXPECT_EQ(with("for=\"edge\"", ""), "");
}

TEST(TopologyGraphml, RefusesXmlThatIsSomethingElse) {
  EXPECT_EQ(complaint([] { return from_graphml("<svg/>"); }),
            "net.graphml:1: <svg> is not GraphML's outermost element, <graphml>");
  EXPECT_EQ(complaint([] { return from_graphml("<graphml/>"); }),
            "net.graphml:1: <graphml> holds no <graph>");
}

TEST(HubRing, GivesTheHubACheapLinkToEveryone) {
  const Topology net = hub_ring(6, {});
  EXPECT_EQ(net.links.size(), 10U);
  EXPECT_EQ(net.first_arc[1], 5U);
  EXPECT_LT(net.links[0].cost, net.links[5].cost);
}

TEST(HubRing, RefusesSizesThatItCannotHave) {
  const auto load = [](const char* name) {
    return complaint([&] { return load_topology(name, {}); });
  };
  EXPECT_EQ(load("hub-ring:3"), "--topology hub-ring:3: N must be a whole number from 4 to 255");
  EXPECT_EQ(load("hub-ring:x"), "--topology hub-ring:x: N must be a whole number from 4 to 255");
  EXPECT_EQ(load("hub-ring:99999999999"),
            "--topology hub-ring:99999999999: N must be a whole number from 4 to 255");
  EXPECT_EQ(load("hub-ring:255"), "");
}

TEST(Topology, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(complaint([] { return load_topology("/nowhere/net.json", {}); }),
            "/nowhere/net.json: No such file or directory");
  EXPECT_EQ(complaint([] { return load_topology("/", {}); }), "/: Is a directory");
  EXPECT_EQ(complaint([] { return load_topology("/dev/null", {}); }),
            "/dev/null: the file is empty");
}

}  // namespace
