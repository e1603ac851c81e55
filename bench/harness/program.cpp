#include "bench/harness/program.hpp"

#include <cstdlib>

#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::bench {

std::string find_program(const std::string& name, const std::filesystem::path& folder) {
  for (const auto& place : {folder / name, folder / ".." / "apps" / name}) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return "";
}

double last_number_after(std::string_view words, const std::string& program,
                         const std::string& output) {
  const std::size_t at = output.rfind(words);
  if (at == std::string::npos)
    throw Error("bench: " + program + " does not tell \"" + std::string(words) + "\": " + output);
  return std::strtod(output.c_str() + at + words.size(), nullptr);
}

}  // namespace dunlin::bench
