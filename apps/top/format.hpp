#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dunlin/table/layout.hpp>

#include "top/value.hpp"

/// Numbers and values as a person reads them; plain ASCII of a known width.
namespace dunlin::top {

/// "12 ms", "4.2 s", "42 s", "12 min", "3.5 h", "9 d".
[[nodiscard]] std::string duration_text(std::uint64_t ns);
/// "250 ns", "1.2 us", "12 ms", and longer ones as duration_text().
[[nodiscard]] std::string latency_text(std::uint64_t ns);
/// "0", "0.3", "12", "1.2 k", "57 M"; "-" if it is not known.
[[nodiscard]] std::string rate_text(std::optional<double> per_s);
[[nodiscard]] std::string count_text(std::uint64_t count);

/// Text of other processes with everything but printable ASCII replaced: it must not reach the
/// terminal's control functions.
[[nodiscard]] std::string printable(std::string_view text);
/// Cut to a width, with ".." for the missing part.
[[nodiscard]] std::string shortened(std::string text, std::size_t width);

[[nodiscard]] std::string value_text(const Value& value);
/// "0.25", "1 2 3 ..", or for a list "[8..12) .. 9 10 11".
[[nodiscard]] std::string values_text(const Column& column, const ColumnValues& values,
                                      std::size_t width);

[[nodiscard]] std::string hex(const Bytes& bytes);

}  // namespace dunlin::top
