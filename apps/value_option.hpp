#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "command.hpp"

namespace dunlin::app {

/// An option whose value is a text that is not empty; `type` is the name of the value in the help.
template <class Text>
CLI::Option* add_text(CLI::App& command, const std::string& option, Text& text,
                      const std::string& type, const std::string& about) {
  return command.add_option(option, text, about)->check(not_empty())->type_name(type);
}

/// An option whose value is a number: a whole one from 0 on, or one that `check` takes.
template <class Number>
CLI::Option* add_number(CLI::App& command, const std::string& option, Number& number,
                        const std::string& type, const std::string& about,
                        const CLI::Validator& check = whole_number()) {
  return command.add_option(option, number, about)->check(check)->type_name(type);
}

}  // namespace dunlin::app
