#include "fabric/launch/environment.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <utility>

#include <unistd.h>

#include <dunlin/error.hpp>

#include "fabric/join/options.hpp"

namespace dunlin::launch {
namespace {

constexpr std::size_t kMaxShownBytes = 200;

/// Quotes the value of a variable, which may hold anything.
std::string quoted(const std::string& value) {
  std::string text = "'";
  for (char c : value.substr(0, kMaxShownBytes)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (value.size() > kMaxShownBytes ? "...'" : "'");
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

/// The variable that a line of the file stands for, and its value.
std::pair<std::string, std::string> read_line(const std::string& line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string::npos) throw Error("it is not of the form `name = value`");
  const std::string name = trimmed(line.substr(0, equals));
  std::string value = trimmed(line.substr(equals + 1));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  if (name == "secret") throw Error("others can read this file: give `secret_file` instead");
  std::string known;
  for (const JoinOption& option : join_options()) {
    if (option.name == name) return {option.variable(), value};
    known += (known.empty() ? "" : ", ") + std::string(option.name);
  }
  throw Error("there is no option `" + name + "`; there are " + known);
}

std::map<std::string, std::string> read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("the file '" + path + "' (DUNLIN_CONFIG) cannot be read");
  std::map<std::string, std::string> variables;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    try {
      variables.insert(read_line(line));
    } catch (const Error& error) {
      throw Error("the file '" + path + "' (DUNLIN_CONFIG), line " + std::to_string(number) + ": " +
                  error.what());
    }
  }
  return variables;
}

}  // namespace

Environment::Environment() {
  const char* const file = std::getenv("DUNLIN_CONFIG");
  if (file == nullptr) return;
  variables_ = read_config(file);
  // A variable counts before the file, also one that gives the same thing under another name.
  if (std::getenv("DUNLIN_SECRET") != nullptr) variables_.erase("DUNLIN_SECRET_FILE");
}

std::optional<std::string> Environment::find(const std::string& name) const {
  const char* const value = made_up_ ? nullptr : std::getenv(name.c_str());
  if (value != nullptr) return value;
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt : std::optional(found->second);
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
