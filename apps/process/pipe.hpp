#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/system.hpp"

namespace dunlin::process {

/// Bytes written to `in` can be read from `out`. A program that is executed inherits neither.
struct Pipe {
  Descriptor out;
  Descriptor in;
};

/// `flags` as of pipe2(). Throws Error.
[[nodiscard]] Pipe make_pipe(int flags = 0);

/// Stops at the first error.
void write_all(const Descriptor& to, std::string_view text) noexcept;

/// Appends all that comes until every writer has closed the pipe; false if that takes too long.
[[nodiscard]] bool read_all(const Descriptor& from, std::string& text,
                            std::optional<std::chrono::milliseconds> timeout = std::nullopt);

}  // namespace dunlin::process
