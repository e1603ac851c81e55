#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_values.hpp"

namespace dunlin::app::resp {

struct Command;
class Session;

/// A Job is one command of a session, or what it does to one of its keys, from its start until its
/// reply is written.
struct Job {
  enum class State : std::uint8_t { fresh, under_way, ended };

  const Command* command = nullptr;
  Session* session = nullptr;
  State state = State::fresh;
  std::vector<std::string_view> arguments;  // the command's name first; in the session's input
  Call* call = nullptr;
  Order order;
  std::size_t key_hash = 0;

  // The state of a command between its steps.
  const char* error = nullptr;  // found by `decide`
  bool flag = false;
  std::uint32_t step = 0;
  std::uint32_t empty_steps = 0;  // of a scan
  std::int64_t number = 0;
  std::string scratch;

  void reset() noexcept {
    command = nullptr;
    session = nullptr;
    state = State::fresh;
    arguments.clear();
    call = nullptr;
    order = {};
    error = nullptr;
    flag = false;
    step = empty_steps = 0;
    number = 0;
    scratch.clear();
  }
};

}  // namespace dunlin::app::resp
