#pragma once

#include <string>
#include <string_view>

/// Numbers with a fraction, as INCRBYFLOAT and its like read and write them.
namespace dunlin::app::resp {

inline constexpr const char* kNotAFloat = "ERR value is not a valid float";

/// Parses as Redis does: by strtold, all of the text, without blanks before.
[[nodiscard]] bool parse_real(std::string_view text, long double& number);
/// Writes as Redis does: 17 digits behind the point, without zeros at the end.
[[nodiscard]] std::string real_text(long double number);

}  // namespace dunlin::app::resp
