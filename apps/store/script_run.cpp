#include "store/script_run.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include <lua.hpp>

#include "store/limits.hpp"
#include "store/lua_values.hpp"
#include "store/session.hpp"

namespace dunlin::app::resp {
namespace {

constexpr int kInstructionsBetweenLooks = 100;
constexpr const char* kChunk = "@user_script";
constexpr const char* kTooSlow = "the script has run for over 100 ms, which is the limit";
static_assert(kMaxScriptNs == 100'000'000, "as kTooSlow says");

struct Memory {
  std::size_t bytes = 0;
};

/// The allocator of lua_newstate.
void* allocate(void* context, void* block, std::size_t old_bytes, std::size_t bytes) {
  auto& memory = *static_cast<Memory*>(context);
  const std::size_t before = block == nullptr ? 0 : old_bytes;
  if (bytes == 0) {
    std::free(block);
    memory.bytes -= before;
    return nullptr;
  }
  if (bytes > before && memory.bytes - before + bytes > kMaxScriptMemory) return nullptr;
  void* const moved = std::realloc(block, bytes);
  if (moved != nullptr) memory.bytes += bytes - before;
  return moved;
}

struct CloseState {
  void operator()(lua_State* lua) const noexcept { lua_close(lua); }
};
using State = std::unique_ptr<lua_State, CloseState>;

ScriptRun& run_of(lua_State* lua) noexcept {
  return **static_cast<ScriptRun**>(lua_getextraspace(lua));
}

/// Takes functions out of the library at the top of the stack.
void remove_all(lua_State* lua, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
}

/// Takes the place of table.sort, which compares without an instruction of the script, so that its
/// time would not be looked at: not with a comparison of its own, nor with one that is in C.
constexpr std::string_view kSort = R"lua(
local sort = table.sort
table.sort = function(list, comes_before)
  comes_before = comes_before or function(a, b) return a < b end
  sort(list, function(a, b) return comes_before(a, b) end)
end)lua";

/// What a script may use. Functions of the libraries that can take long within one instruction, or
/// leave the script, are not there: the matching of patterns, rep, load, and metatables, by which
/// others would not end.
void open_libraries(lua_State* lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  remove_all(lua, {"collectgarbage", "dofile", "getmetatable", "load", "loadfile", "print",
                   "rawset", "require", "setmetatable", "warn"});
  lua_pop(lua, 1);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  remove_all(lua, {"move"});
  lua_getfield(lua, -1, "unpack");
  lua_setglobal(lua, "unpack");  // where Redis has it
  lua_pop(lua, 1);
  if (luaL_loadbufferx(lua, kSort.data(), kSort.size(), "=table", "t") != LUA_OK) lua_error(lua);
  lua_call(lua, 0, 0);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  remove_all(lua, {"dump", "find", "gmatch", "gsub", "match", "pack", "packsize", "rep", "unpack"});
  lua_pop(lua, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  // Lua itself begins with the second of the clock, so that scripts of one second draw the same.
  static std::mt19937_64 seeds{std::random_device{}()};
  lua_getfield(lua, -1, "randomseed");
  lua_pushinteger(lua, static_cast<lua_Integer>(seeds()));
  lua_call(lua, 1, 0);
  lua_pop(lua, 1);
}

void set_list(lua_State* lua, const char* name, std::span<const std::string_view> texts) {
  lua_createtable(lua, static_cast<int>(texts.size()), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    lua_pushlstring(lua, texts[i].data(), texts[i].size());
    lua_rawseti(lua, -2, static_cast<lua_Integer>(i) + 1);
  }
  lua_setglobal(lua, name);
}

}  // namespace

/// The functions that a script can call.
struct ScriptFunctions {
  /// Once the time is up, each further instruction fails, so that no pcall of the script's goes on.
  static void look_at_time(lua_State* lua, lua_Debug*) {
    if (cpu_ns() < run_of(lua).overlay_.end_cpu_ns()) return;
    lua_sethook(lua, look_at_time, LUA_MASKCOUNT, 1);
    luaL_error(lua, kTooSlow);
  }

  /// The arguments of redis.call are copied outside of the script's memory, so they have a
  /// request's limits. Null: they are within these.
  static const char* check_size(lua_State* lua) noexcept {
    const int count = lua_gettop(lua);
    if (count == 0) return "ERR Please specify at least one argument for this redis lib call";
    static_assert(
        kMaxArguments == 65536 && kMaxArgumentBytes == 1048576 && kMaxRequestBytes == 8388608,
        "as the errors say");
    if (static_cast<std::size_t>(count) > kMaxArguments)
      return "ERR the command of the script has over 65536 arguments, which is the limit";
    std::size_t all_bytes = 0;
    for (int i = 1; i <= count; ++i) {
      const std::size_t bytes = lua_type(lua, i) == LUA_TSTRING ? lua_rawlen(lua, i) : 0;
      if (bytes > kMaxArgumentBytes)
        return "ERR an argument of the script's command has over 1048576 bytes, which is the limit";
      all_bytes += bytes;
    }
    if (all_bytes <= kMaxRequestBytes) return nullptr;
    return "ERR the arguments of the script's command have over 8388608 bytes, which is the limit";
  }

  /// Leaves the reply of the command on the stack.
  static void carry_out(lua_State* lua) {
    ScriptRun& run = run_of(lua);
    if (const char* const wrong = check_size(lua)) return push_table(lua, "err", wrong);
    std::vector<std::string> words(static_cast<std::size_t>(lua_gettop(lua)));
    for (std::size_t i = 0; i < words.size(); ++i)
      if (!take_word(lua, static_cast<int>(i + 1), words[i]))
        return push_table(lua, "err",
                          "ERR Lua redis lib command arguments must be strings or integers");
    // Nobody can subscribe, so that nobody hears it. Scripts that release a lock end so.
    if (words.size() == 3 && (is_word(words[0], "publish") || is_word(words[0], "spublish")))
      return lua_pushinteger(lua, 0);
    const std::vector<std::string_view> views(words.begin(), words.end());
    const Command* const command = find_command(views[0]);
    if (command == nullptr)
      return push_table(lua, "err", "ERR Unknown Redis command called from script");
    if (!arity_fits(*command, views.size()))
      return push_table(lua, "err", "ERR Wrong number of args calling Redis command from script");
    if (!command->is_for_scripts())
      return push_table(lua, "err", "ERR This Redis command is not allowed from script");
    std::string replies;
    if (const char* const why =
            run.overlay_.run(*command, run.session_, views, Protocol::resp2, replies))
      return push_table(lua, "err", why);
    std::size_t at = 0;
    push_reply(lua, replies, at);
  }

  static bool is_error(lua_State* lua) {
    if (lua_type(lua, -1) != LUA_TTABLE) return false;
    lua_getfield(lua, -1, "err");
    const bool is_one = lua_type(lua, -1) == LUA_TSTRING;
    lua_pop(lua, 1);
    return is_one;
  }

  static int call(lua_State* lua) {
    carry_out(lua);
    return is_error(lua) ? lua_error(lua) : 1;
  }
  static int pcall(lua_State* lua) {
    carry_out(lua);
    return 1;
  }
  static int error_reply(lua_State* lua) {
    std::string text;
    if (lua_gettop(lua) != 1 || !take_word(lua, 1, text))
      return luaL_error(lua, "wrong number or type of arguments");
    push_table(lua, "err", text);
    return 1;
  }
  static int status_reply(lua_State* lua) {
    std::string text;
    if (lua_gettop(lua) != 1 || !take_word(lua, 1, text))
      return luaL_error(lua, "wrong number or type of arguments");
    push_table(lua, "ok", text);
    return 1;
  }
  static int sha1hex(lua_State* lua) {
    look_at_time(lua, nullptr);  // one instruction takes long here
    std::string text;
    if (lua_gettop(lua) != 1 || !take_word(lua, 1, text))
      return luaL_error(lua, "wrong number of arguments");
    const std::string name = script_name(text);
    lua_pushlstring(lua, name.data(), name.size());
    return 1;
  }
  static int nothing(lua_State*) { return 0; }

  static void set(lua_State* lua) {
    constexpr std::array<luaL_Reg, 7> kFunctions{{{"call", call},
                                                  {"pcall", pcall},
                                                  {"error_reply", error_reply},
                                                  {"status_reply", status_reply},
                                                  {"sha1hex", sha1hex},
                                                  {"log", nothing},
                                                  {nullptr, nullptr}}};
    lua_createtable(lua, 0, 12);
    luaL_setfuncs(lua, kFunctions.data(), 0);
    int level = 0;
    for (const char* const name : {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"}) {
      lua_pushinteger(lua, level++);
      lua_setfield(lua, -2, name);
    }
    lua_setglobal(lua, "redis");
  }
};

namespace {

/// What run() hands to the protected part of it.
struct ScriptTask {
  const std::string& text;
  std::span<const std::string_view> keys;
  std::span<const std::string_view> arguments;
  Reply& reply;
  const std::string& replies;
};

int run_protected(lua_State* lua) {
  const ScriptTask& task = *static_cast<const ScriptTask*>(lua_touserdata(lua, 1));
  open_libraries(lua);
  ScriptFunctions::set(lua);
  set_list(lua, "KEYS", task.keys);
  set_list(lua, "ARGV", task.arguments);
  if (luaL_loadbufferx(lua, task.text.data(), task.text.size(), kChunk, "t") != LUA_OK)
    return lua_error(lua);
  lua_sethook(lua, ScriptFunctions::look_at_time, LUA_MASKCOUNT, kInstructionsBetweenLooks);
  lua_call(lua, 0, 1);
  lua_sethook(lua, nullptr, 0, 0);
  if (!append_value(lua, task.reply, task.replies))
    return luaL_error(lua, "the reply is over 8388608 bytes, or 16 tables deep");
  return 0;
}
static_assert(kMaxReplyBytes == 8388608, "as run_protected says");

}  // namespace

bool ScriptRun::run(const std::string& text, std::span<const std::string_view> keys,
                    std::span<const std::string_view> arguments, Protocol protocol,
                    std::string& replies) {
  Memory memory;
  const State state(lua_newstate(allocate, &memory));
  if (!state) throw std::bad_alloc();
  lua_State* const lua = state.get();
  *static_cast<ScriptRun**>(lua_getextraspace(lua)) = this;
  static_cast<void>(overlay_.end_cpu_ns());  // the time begins
  std::string own;
  Reply reply(own, protocol);
  ScriptTask task{
      .text = text, .keys = keys, .arguments = arguments, .reply = reply, .replies = own};
  lua_pushcfunction(lua, run_protected);
  lua_pushlightuserdata(lua, &task);
  const bool well = lua_pcall(lua, 1, 0, 0) == LUA_OK;
  if (!well) {
    own.clear();
    reply.error(error_text(lua));
  }
  replies += own;
  return well;
}

std::string script_mistake(const std::string& text) {
  Memory memory;
  const State state(lua_newstate(allocate, &memory));
  if (!state) throw std::bad_alloc();
  if (luaL_loadbufferx(state.get(), text.data(), text.size(), kChunk, "t") == LUA_OK) return {};
  return error_text(state.get());
}

}  // namespace dunlin::app::resp
