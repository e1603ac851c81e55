// Several processes search a graph breadth first, together. The vertices of a distance are in a
// queue, from which each process takes some. The process that inserts a vertex into the map first
// pushes it for the next distance. One process compares all distances with those of Boost.Graph.
// Start it three times:
//
//     for i in 1 2 3; do ./breadth_first backbone/world.json & done; wait
//
// The file is a graph in node-link JSON, as PyPI's topohub has them.

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <nlohmann/json.hpp>

#include <dunlin/container.hpp>
#include <dunlin/join.hpp>

namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::size_t kAtOnce = 16;  // vertices that a process takes from the queue

using Vertex = std::uint32_t;
using Graph = std::vector<std::vector<Vertex>>;
using dunlin::remote::Status;

Graph read_graph(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw dunlin::Error("'" + file + "' cannot be read");
  const auto document = nlohmann::json::parse(in);
  std::unordered_map<std::string, Vertex> vertices;
  for (const auto& node : document.at("nodes"))
    vertices.emplace(node.at("id").dump(), static_cast<Vertex>(vertices.size()));
  Graph graph(vertices.size());
  for (const auto& edge : document.contains("edges") ? document["edges"] : document.at("links")) {
    const Vertex a = vertices.at(edge.at("source").dump()),
                 b = vertices.at(edge.at("target").dump());
    graph[a].push_back(b);
    graph[b].push_back(a);
  }
  return graph;
}

void demand(Status status, const char* what) {
  if (status != Status::ok)
    throw dunlin::Error(std::string(what) + ": " + std::string(dunlin::remote::describe(status)));
}

/// The distance of each vertex from vertex 0, in a map of all processes.
class Search {
 public:
  Search(dunlin::Containers& containers, const Graph& graph)
      : graph_(graph),
        team_(containers, {.name = "team"}),
        distances_(containers, {.name = "distances",
                                .slots = static_cast<std::uint32_t>(2 * graph.size() + 64)}) {
    for (const char* name : {"even", "odd"})
      queues_.push_back(std::make_unique<dunlin::Queue<Vertex>>(
          containers,
          dunlin::QueueOptions{.name = name,
                               .capacity = static_cast<std::uint32_t>(graph.size() + kAtOnce)}));
  }

  /// How many vertices this process has visited.
  std::uint64_t run(bool begins) {
    if (begins) reach(0, 0);
    demand(team_.barrier().wait(), "a barrier");  // the first vertex is in its queue
    for (std::uint64_t visited = 0;;) {
      const std::uint64_t of_distance = visit_all_of(distance_);
      visited += of_distance;
      ++distance_;
      // When this ends, all of the next distance are in their queue.
      const auto of_all = team_.all_reduce(of_distance, std::plus<>()).outcome();
      demand(of_all.status, "a sum");
      if (of_all.value() == 0) return visited;
    }
  }
  bool is_as_by_boost() {
    using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
    Adjacency adjacency(graph_.size());
    for (Vertex from = 0; from < graph_.size(); ++from)
      for (const Vertex to : graph_[from])
        if (from < to) boost::add_edge(from, to, adjacency);
    std::vector<std::uint32_t> expected(graph_.size(), UINT32_MAX);
    expected[0] = 0;
    boost::breadth_first_search(adjacency, boost::vertex(0, adjacency),
                                boost::visitor(boost::make_bfs_visitor(boost::record_distances(
                                    expected.data(), boost::on_tree_edge()))));
    std::uint64_t wrong = 0;
    for (Vertex vertex = 0; vertex < graph_.size(); ++vertex) {
      auto find = distances_.find(vertex, dunlin::Promise::reads);
      demand(find.outcome().status, "a find");
      const std::uint32_t distance = find.result().found() ? find.result().value() : UINT32_MAX;
      if (distance != expected[vertex]) ++wrong;
    }
    std::cout << graph_.size() << " vertices, " << distance_ << " distances, " << wrong
              << " differ from Boost.Graph\n";
    return wrong == 0;
  }
  /// However it ends: all have come here, or one has gone.
  void leave_together() { team_.barrier().wait(); }

 private:
  /// Of all that reach a vertex at once, one inserts it.
  void reach(Vertex vertex, std::uint32_t distance) {
    auto insert = distances_.insert(vertex, distance);
    demand(insert.outcome().status, "an insert");
    if (!insert.result().inserted()) return;
    auto push = queues_[distance % 2]->push(vertex);
    demand(push.wait(), "a push");
  }
  std::uint64_t visit_all_of(std::uint32_t distance) {
    std::uint64_t visited = 0;
    for (;;) {
      std::array<Vertex, kAtOnce> some{};
      std::size_t many = 0;
      const Status status = queues_[distance % 2]->pop_many(some, many);
      if (status == Status::empty) return visited;
      demand(status, "a pop");
      for (const Vertex vertex : std::span(some).first(many))
        for (const Vertex next : graph_[vertex]) reach(next, distance + 1);
      visited += many;
    }
  }

  const Graph& graph_;
  dunlin::Collectives team_;
  dunlin::HashMap<Vertex, std::uint32_t> distances_;
  std::vector<std::unique_ptr<dunlin::Queue<Vertex>>> queues_;
  std::uint32_t distance_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw dunlin::Error("usage: breadth_first GRAPH.json");
  const Graph graph = read_graph(argv[1]);
  const auto fabric = dunlin::join({.group = "example-breadth-first", .members = kMembers});
  dunlin::Containers containers(*fabric);
  Search search(containers, graph);
  const std::uint64_t visited = search.run(fabric->rank() == 0);
  std::cout << "process " << fabric->rank() << " has visited " << visited << " vertices\n";
  const bool right = fabric->rank() != 0 || search.is_as_by_boost();
  search.leave_together();
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
