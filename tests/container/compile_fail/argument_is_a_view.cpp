// must say: no references, pointers or views
#include <string>
#include <string_view>

#include <dunlin/container.hpp>

#ifdef MISTAKE
using Text = std::string_view;
#else
using Text = std::string;
#endif

void use(dunlin::Containers& containers) {
  const dunlin::Function<int(Text)> count(containers, {.name = "count"},
                                          [](const Text&) { return 1; });
}
