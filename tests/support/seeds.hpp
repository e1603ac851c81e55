#pragma once

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

/// The seeds of an audit.
namespace dunlin::test {

/// From 1 on, as many as usual; or those of DUNLIN_SEEDS="FIRST LAST".
struct Seeds {
  explicit Seeds(std::uint64_t as_usual) : last(as_usual) {
    const char* const wanted = std::getenv("DUNLIN_SEEDS");
    if (wanted == nullptr) return;
    are_usual = false;
    if (!(std::istringstream(wanted) >> first >> last) || first == 0 || last < first)
      throw std::invalid_argument("DUNLIN_SEEDS is 'FIRST LAST', as '1 50000', and not '" +
                                  std::string(wanted) + "'");
  }
  std::uint64_t first = 1;
  std::uint64_t last;
  bool are_usual = true;
};

/// One after the other, up to the first that fails.
template <class Audit>
void for_each_seed(const Seeds& seeds, const Audit& audit) {
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with DUNLIN_SEEDS='" << seed << " " << seed << "'");
    audit(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace dunlin::test
