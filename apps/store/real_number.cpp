#include "store/real_number.hpp"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kMaxDigits = 256;

}  // namespace

bool parse_real(std::string_view text, long double& number) {
  if (text.empty() || text.size() > kMaxDigits) return false;
  if (std::isspace(static_cast<unsigned char>(text.front())) != 0) return false;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  number = std::strtold(copy.c_str(), &end);
  const bool out_of_range = errno == ERANGE && (std::isinf(number) || number == 0);
  return end == copy.c_str() + copy.size() && !out_of_range && !std::isnan(number);
}

std::string real_text(long double number) {
  std::string text = fmt::format("{:.17f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace dunlin::app::resp
