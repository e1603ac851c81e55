#pragma once

#include <string>
#include <string_view>

namespace dunlin {

/// The first difference between two layout texts of one region (RegionSpec::layout_text), in words,
/// for the message of a refusal, such as "column 'load' is 'f64 word @8 x1 =8 /8 +8' there and 'f32
/// word @4 x1 =4 /4 +4' here". `there` may come from another process, and hold anything.
[[nodiscard]] std::string layout_difference(std::string_view there, std::string_view here);

}  // namespace dunlin
