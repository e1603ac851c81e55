#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/system.hpp"

namespace dunlin::kmers {

/// A file of reads that every process can read, several times, from its beginning.
struct Input {
  std::string name;  // as the user gave it
  std::string path;  // where other processes see the file, or the copy of a pipe, too
  std::shared_ptr<const Descriptor> copy = {};  // keeps it
};

/// Takes each file as it is, and copies each pipe to a nameless file in `folder`. Throws BadInput
/// for a directory, a device, and a pipe that is named twice.
[[nodiscard]] std::vector<Input> inputs_of(const std::vector<std::string>& names,
                                           const std::string& folder);

}  // namespace dunlin::kmers
