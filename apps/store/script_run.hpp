#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/key_overlay.hpp"
#include "store/reply.hpp"

struct lua_State;

namespace dunlin::app::resp {

/// Runs one script of Lua. It reaches nothing but the keys of an overlay, by redis.call and
/// redis.pcall; memory and time that it takes are limited. Everything is on one thread.
///
///     ScriptRun run(session, overlay);
///     const bool well = run.run(text, keys, arguments, reply);
class ScriptRun {
 public:
  ScriptRun(Session& session, KeyOverlay& overlay) : session_(session), overlay_(overlay) {}
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  /// Appends the reply. Returns false if it is the error with which the script has failed.
  bool run(const std::string& text, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, Protocol protocol, std::string& replies);

 private:
  friend struct ScriptFunctions;  // what a script can call

  Session& session_;
  KeyOverlay& overlay_;
};

/// Why a script cannot be compiled; empty if it can.
[[nodiscard]] std::string script_mistake(const std::string& text);

}  // namespace dunlin::app::resp
