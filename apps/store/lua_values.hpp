#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/reply.hpp"

struct lua_State;

/// Replies of commands as values of Lua, and the reverse, as Redis converts them. The library is
/// compiled as C++: its errors are exceptions, so objects on the way are destroyed.
namespace dunlin::app::resp {

/// Pushes the reply, in RESP2, that begins at `at`, and moves `at` behind it.
void push_reply(lua_State* lua, std::string_view replies, std::size_t& at);
/// Pushes a table of one field, such as an error.
void push_table(lua_State* lua, const char* field, std::string_view text);
/// Appends the value at the top of the stack as a reply. Returns false if it is over the limit of
/// replies, or its tables are nested too deeply.
[[nodiscard]] bool append_value(lua_State* lua, Reply& reply, const std::string& replies);
/// The text of an error at the top of the stack.
[[nodiscard]] std::string error_text(lua_State* lua);
/// The argument of a command at that place of the stack. Returns false if it is no text or number.
[[nodiscard]] bool take_word(lua_State* lua, int at, std::string& word);

}  // namespace dunlin::app::resp
