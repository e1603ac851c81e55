#include "store/lua_values.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>
#include <lua.hpp>

#include "store/limits.hpp"

namespace dunlin::app::resp {
namespace {

constexpr int kMaxDepth = 16;

std::int64_t number_of(std::string_view text) noexcept {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);  // we wrote the reply
  return number;
}

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

/// The text of a field of the table at the top of the stack; false if there is none.
bool take_field(lua_State* lua, const char* field, std::string& text) {
  lua_pushstring(lua, field);
  lua_rawget(lua, -2);
  const bool is_text = lua_type(lua, -1) == LUA_TSTRING;
  if (is_text) {
    std::size_t bytes = 0;
    const char* const data = lua_tolstring(lua, -1, &bytes);
    text.assign(data, bytes);
  }
  lua_pop(lua, 1);
  return is_text;
}

bool append(lua_State* lua, Reply& reply, const std::string& replies, int depth);

bool append_table(lua_State* lua, Reply& reply, const std::string& replies, int depth) {
  std::string text;
  if (take_field(lua, "err", text)) {
    reply.error(text);
    return true;
  }
  if (take_field(lua, "ok", text)) {
    for (char& c : text)
      if (c == '\r' || c == '\n') c = ' ';
    reply.simple(text);
    return true;
  }
  std::size_t count = 0;
  while (lua_rawgeti(lua, -1, static_cast<lua_Integer>(count) + 1) != LUA_TNIL) {
    lua_pop(lua, 1);
    ++count;
  }
  lua_pop(lua, 1);
  reply.array(count);
  for (std::size_t i = 1; i <= count; ++i) {
    lua_rawgeti(lua, -1, static_cast<lua_Integer>(i));
    const bool well = append(lua, reply, replies, depth + 1);
    lua_pop(lua, 1);
    if (!well) return false;
  }
  return true;
}

bool append(lua_State* lua, Reply& reply, const std::string& replies, int depth) {
  if (depth > kMaxDepth || replies.size() > kMaxReplyBytes || lua_checkstack(lua, 4) == 0)
    return false;
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      std::size_t bytes = 0;
      const char* const data = lua_tolstring(lua, -1, &bytes);
      reply.bulk({data, bytes});
      return true;
    }
    case LUA_TNUMBER: {
      constexpr double kMost = 9.2e18;
      const double number = lua_tonumber(lua, -1);
      const bool fits = number > -kMost && number < kMost;
      reply.integer(lua_isinteger(lua, -1) != 0 ? lua_tointeger(lua, -1)
                    : fits                      ? static_cast<std::int64_t>(number)
                                                : 0);
      return true;
    }
    case LUA_TBOOLEAN:
      lua_toboolean(lua, -1) != 0 ? reply.integer(1) : reply.null();
      return true;
    case LUA_TTABLE:
      return append_table(lua, reply, replies, depth);
    default:
      reply.null();
      return true;
  }
}

}  // namespace

void push_table(lua_State* lua, const char* field, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, field);
}

void push_reply(lua_State* lua, std::string_view replies, std::size_t& at) {
  const char type = replies[at];
  const std::size_t end = replies.find("\r\n", at);
  const std::string_view line = replies.substr(at + 1, end - at - 1);
  at = end + 2;
  luaL_checkstack(lua, 4, "the reply is nested too deeply");
  switch (type) {
    case '+':
      return push_table(lua, "ok", line);
    case '-':
      return push_table(lua, "err", line);
    case ':':
      return lua_pushinteger(lua, number_of(line));
    case '$': {
      const std::int64_t bytes = number_of(line);
      if (bytes < 0) return lua_pushboolean(lua, 0);
      push_text(lua, replies.substr(at, static_cast<std::size_t>(bytes)));
      at += static_cast<std::size_t>(bytes) + 2;
      return;
    }
    default: {
      const std::int64_t count = number_of(line);
      if (count < 0) return lua_pushboolean(lua, 0);
      lua_createtable(lua, static_cast<int>(count), 0);
      for (std::int64_t i = 1; i <= count; ++i) {
        push_reply(lua, replies, at);
        lua_rawseti(lua, -2, i);
      }
    }
  }
}

bool append_value(lua_State* lua, Reply& reply, const std::string& replies) {
  return append(lua, reply, replies, 0) && replies.size() <= kMaxReplyBytes;
}

std::string error_text(lua_State* lua) {
  std::string text;
  if (lua_type(lua, -1) == LUA_TTABLE && take_field(lua, "err", text)) return text;
  if (lua_type(lua, -1) != LUA_TSTRING) return "ERR the script has failed";
  std::size_t bytes = 0;
  const char* const data = lua_tolstring(lua, -1, &bytes);
  return "ERR " + std::string(data, bytes);
}

bool take_word(lua_State* lua, int at, std::string& word) {
  if (lua_type(lua, at) == LUA_TNUMBER) {
    word = lua_isinteger(lua, at) != 0 ? fmt::format("{}", lua_tointeger(lua, at))
                                       : fmt::format("{:.17g}", lua_tonumber(lua, at));
    return true;
  }
  if (lua_type(lua, at) != LUA_TSTRING) return false;
  std::size_t bytes = 0;
  const char* const data = lua_tolstring(lua, at, &bytes);
  word.assign(data, bytes);
  return true;
}

}  // namespace dunlin::app::resp
