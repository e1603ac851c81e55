// must say: a queue's elements are trivially copyable, or have a ContainerTrait
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#ifdef MISTAKE
using Lines = dunlin::Queue<std::vector<std::string>>;
#else
using Lines = dunlin::Queue<std::string>;
#endif

void use(dunlin::Containers& containers) {
  const Lines lines(containers, {.name = "lines", .capacity = 1});
}
