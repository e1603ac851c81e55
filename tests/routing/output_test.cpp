#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "networks.hpp"
#include "report/page.hpp"
#include "routing/json_output.hpp"
#include "routing/map.hpp"
#include "routing/run.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

/// A simulated run of two events on a square whose first router has this name.
RunRecord run_of(const std::string& name) {
  RunRecord run;
  run.topology = from_json(kSquare);
  run.topology.routers[0].label = name;
  run.fabric = "sim";
  run.profile = "ideal";
  const auto events = parse_script("s", "cost a b 40\ndown b 7", run.topology);
  const Plan plan(run.topology, events);
  const Finish finish = run_on_sim(plan, "ideal", 1, [&](const EventRecord& record) {
    record.event ? run.events.push_back(record) : void(run.start = record);
  });
  run.verdict = check(run.topology, costs_after(run.topology, events, 2), finish.tables);
  return run;
}

TEST(JsonOutput, HoldsWhatARunFound) {
  const RunRecord run = run_of("a");
  const auto json = nlohmann::json::parse(to_json({&run, 1}, 1));
  EXPECT_EQ(json["format"], "dunlin-routing");
  const auto& first = json["runs"][0];
  EXPECT_EQ(first["name"], "Square");
  EXPECT_EQ(first["routers"].size(), 4U);
  EXPECT_EQ(first["events"][0]["text"], "a – Bern: 1.5 → 40");
  EXPECT_EQ(first["events"][1]["after"], nullptr);
  EXPECT_EQ(first["events"][1]["kind"], "down");
  EXPECT_EQ(first["events"][0]["routers"]["installed_ns"].size(), 4U);
  EXPECT_EQ(first["events"][0]["recomputed"].get<int>() + first["events"][0]["skipped"].get<int>(),
            4);
  EXPECT_TRUE(first["check"]["agrees"]);
  EXPECT_EQ(first["check"]["compared"], 12);
}

TEST(JsonOutput, SurvivesNamesThatAreNotUtf8) {
  const RunRecord run = run_of("caf\xe9");
  EXPECT_TRUE(nlohmann::json::accept(to_json({&run, 1}, -1)));
}

TEST(Report, IsOnePageThatAsksNobodyForAnything) {
  const RunRecord run = run_of("a");
  const std::string page = dunlin::app::report_page("routing", to_json({&run, 1}, -1));
  for (const char* request : {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "https://"}) {
    EXPECT_EQ(page.find(request), std::string::npos) << request;
  }
  const std::string svg_namespace = "http://www.w3.org/2000/svg";
  EXPECT_EQ(page.find("http://"), page.find(svg_namespace));
  EXPECT_EQ(page.find("http://"), page.rfind("http://"));
  EXPECT_EQ(page.find("@STYLE@"), std::string::npos);
  EXPECT_EQ(page.find("DUNLIN_DATA"), std::string::npos);
}

TEST(Report, CannotBeBrokenByAName) {
  const RunRecord run = run_of("</script><script>alert(1)</script><!--");
  const std::string page = dunlin::app::report_page("routing", to_json({&run, 1}, -1));
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
}

void expect_readable(const Map& map) {
  EXPECT_GE(map.aspect, 0.49);
  EXPECT_LE(map.aspect, 1.01);
  for (std::size_t a = 0; a < map.points.size(); ++a) {
    EXPECT_GE(map.points[a].x, -1e-9);
    EXPECT_LE(map.points[a].x, 1 + 1e-9);
    EXPECT_GE(map.points[a].y, -1e-9);
    EXPECT_LE(map.points[a].y, map.aspect + 1e-9);
    for (std::size_t b = a + 1; b < map.points.size(); ++b) {
      EXPECT_GT(std::hypot(map.points[a].x - map.points[b].x, map.points[a].y - map.points[b].y),
                0.005)
          << "routers " << a << " and " << b << " hide each other";
    }
  }
}

TEST(Map, ShowsEveryRouterWhetherOrNotItHasAPlace) {
  std::mt19937_64 draw(3);
  Topology net = random_network(30, 20, draw);
  expect_readable(draw_map(net));
  net.routers[0].position = Position{10, 50};
  net.routers[9].position = Position{10, 50};
  net.routers[5].position = Position{-70, 40};
  expect_readable(draw_map(net));
  for (auto& router : net.routers) router.position = Position{1, 1};
  expect_readable(draw_map(net));
}

TEST(Map, PutsNorthAbove) {
  Topology net = from_json(kSquare);
  net.geographic = true;
  net.routers[0].position = Position{0, 10};
  net.routers[1].position = Position{0, 60};
  net.routers[2].position = Position{20, 10};
  net.routers[3].position = Position{20, 60};
  const Map map = draw_map(net);
  EXPECT_LT(map.points[1].y, map.points[0].y);
  EXPECT_LT(map.points[0].x, map.points[2].x);
}

}  // namespace
