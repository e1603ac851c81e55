#include "assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace dunlin {

void assertion_failed(const char* file, int line, const char* condition,
                      const char* sentence) noexcept {
  std::fprintf(stderr, "dunlin: %s:%d: this does not hold: %s (%s)\n", file, line, sentence,
               condition);
  std::abort();
}

}  // namespace dunlin
