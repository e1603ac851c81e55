// A table between hosts, whose members a launcher has placed: this program knows neither how many
// there are, nor where. Start it with mpirun or srun, or say it by hand:
//
//     mpirun -n 4 ./launched_table
//     openssl rand -hex 32 > secret && chmod 600 secret && export DUNLIN_SECRET_FILE=$PWD/secret
//     DUNLIN_MEMBERS=2 DUNLIN_RENDEZVOUS=unix:by-hand ./launched_table &  # twice

#include <iostream>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

namespace {

struct Row {
  dunlin::Cell<int> step;
  dunlin::Cell<int> square;
};

constexpr std::uint32_t kTimeoutMs = 60'000;
constexpr std::uint32_t kSilenceMs = 20'000;  // four of them may share a core

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.network = "tcp",
                                    .group = "launched_table",
                                    .timeout_ms = kTimeoutMs,
                                    .silence_timeout_ms = kSilenceMs});
  const auto rank = static_cast<int>(fabric->rank());
  if (rank == 0) std::cout << fabric->description() << '\n';
  dunlin::Table<Row> table(fabric);

  bool all_here = false;
  table.when(dunlin::all(&Row::step) >= 1).once([&](auto& t) {
    int sum = 0;
    for (std::size_t i = 0; i < t.size(); ++i) sum += t[i].square;
    if (rank == 0) std::cout << t.size() << " nodes, sum of squares " << sum << std::endl;
    all_here = true;
  });

  table.mine().square = rank * rank;
  table.mine().step = 1;
  table.push(&Row::square, &Row::step);

  return dunlin::run_until(
             table, [&] { return all_here && table.settled(); }, kTimeoutMs)
             ? 0
             : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
