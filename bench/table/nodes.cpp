#include "bench/table/nodes.hpp"

#include <atomic>
#include <exception>
#include <thread>

#include <dunlin/fabric/shm.hpp>

#include "group_name.hpp"

namespace dunlin::bench {

std::string fresh_group() { return app::fresh_group("bench"); }

std::unique_ptr<Fabric> join(const std::string& group, std::uint32_t members, std::uint32_t rank) {
  return shm::join({.group = group, .members = members, .rank = rank, .silence_timeout_ms = 0});
}

std::vector<std::unique_ptr<Fabric>> join_many(const std::string& group, std::uint32_t members,
                                               std::uint32_t first, std::uint32_t count) {
  std::vector<std::unique_ptr<Fabric>> fabrics(count);
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          fabrics[i] = join(group, members, first + i);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return fabrics;
}

}  // namespace dunlin::bench
