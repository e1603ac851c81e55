#include "fabric/launch/environment.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::launch {
namespace {

constexpr std::size_t kMaxShownBytes = 200;

/// Quotes the value of a variable, which may hold anything.
std::string quoted(const std::string& value) {
  std::string text = "'";
  for (char c : value.substr(0, kMaxShownBytes)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (value.size() > kMaxShownBytes ? "...'" : "'");
}

}  // namespace

std::optional<std::string> Environment::find(const std::string& name) const {
  if (made_up_) {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
  }
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> Environment::text(const std::string& name) const {
  std::optional<std::string> value = find(name);
  if (value && value->empty())
    throw Error("the environment variable " + name +
                " is set, and empty: give it a value, or "
                "unset it");
  return value;
}

std::optional<std::uint32_t> Environment::number(const std::string& name, std::uint32_t min,
                                                 std::uint32_t max) const {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = value->data() + value->size();
  const auto read = std::from_chars(value->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < min || number > max)
    throw Error("the environment variable " + name + " is " + quoted(*value) +
                ", and not a number from " + std::to_string(min) + " to " + std::to_string(max));
  return number;
}

std::string Environment::host_name() const {
  if (made_up_) return host_name_;
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string state_of(const Environment& environment, const std::string& name) {
  if (!environment.has(name)) return name + " is not set";
  return name + " is " + quoted(*environment.text(name));
}

}  // namespace dunlin::launch
