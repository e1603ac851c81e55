#include "kmers/resident.hpp"

#include <fstream>
#include <string>

namespace dunlin::kmers {

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "Pss:" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace dunlin::kmers
