// Check-pointing: workers compute parts of one result, and write check-points of them into segments
// at a keeper (checkpointing.hpp). Workers may be killed at any instruction. Start the keeper, rank
// 0, and some workers:
//
//     ./checkpointing job 4 0 & ./checkpointing job 4 1 & ./checkpointing job 4 2 & ./checkpointing
//     job 4 3
//
// The state of a part depends on the states of all parts in the epoch before, so a restart from
// states that do not belong together would change the result; each worker computes it alone, too.

#include "checkpointing.hpp"

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

using services::Worker;

constexpr std::uint64_t kEpochs = 300;

void work(Member& member, std::size_t parts) {
  std::vector<dunlin::Key> keys;
  for (std::size_t i = 0; i < 2 * parts; ++i)
    keys.push_back(member.find(services::checkpoint_segment(i).name));
  Worker worker(member.space, keys, kEpochs);
  std::uint64_t restarts = 0;
  member.run(worker.restart());
  while (!worker.done()) {
    const std::uint64_t epoch = worker.epoch();
    if (worker.restarts() != restarts) {
      restarts = worker.restarts();
      std::cout << "restart at epoch " << epoch << std::endl;
    }
    member.run(worker.step());
    if (worker.epoch() == epoch + 1 && worker.epoch() % 10 == 0)
      std::cout << "epoch " << worker.epoch() << std::endl;
    member.space.poll();
  }
  const std::uint64_t result = services::digest(worker.states());
  const bool same = result == services::digest_of_one_process(parts, kEpochs);
  const std::uint64_t written = worker.checkpoints();
  std::cout << "result " << result << (same ? ", as of one process" : ", WRONG") << "; " << written
            << " check-points, of " << (written > 0 ? worker.checkpoint_ns() / written : 0)
            << " ns each" << std::endl;
  if (!same) throw dunlin::Error("another result than that of one process");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw dunlin::Error("usage: checkpointing GROUP MEMBERS RANK");
  const auto members = static_cast<std::uint32_t>(std::atoi(argv[2]));
  Member member(argv[1], members, static_cast<std::uint32_t>(std::atoi(argv[3])));
  const std::size_t parts = members - 1;
  if (member.fabric->rank() == 0) {
    for (std::size_t i = 0; i < 2 * parts; ++i) member.allocate(services::checkpoint_segment(i));
  } else {
    work(member, parts);
  }
  TypedLines input;  // serves the others until its input ends
  while (!input.over()) {
    member.rest(20);
    if (input.front() != nullptr) input.pop();
  }
  member.leave();
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
