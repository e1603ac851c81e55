#include "bench/harness/join_many.hpp"

#include <exception>
#include <thread>

namespace dunlin::bench {

std::vector<std::unique_ptr<Fabric>> join_many(
    Rank first, std::uint32_t count, const std::function<std::unique_ptr<Fabric>(Rank)>& join) {
  std::vector<std::unique_ptr<Fabric>> fabrics(count);
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          fabrics[i] = join(first + i);
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
