#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/limits.hpp>

#include "store/command_table.hpp"
#include "store/connection.hpp"
#include "store/key_overlay.hpp"
#include "store/script_run.hpp"
#include "store/session.hpp"

/// EVAL, EVALSHA and SCRIPT.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

constexpr std::size_t kCountWord = 2;
constexpr const char* kScriptTooLong = "ERR the script has over 65536 bytes, which is the limit";
static_assert(kMaxScriptBytes == 65536, "as kScriptTooLong says");
constexpr const char* kTooManyScriptKeys = "ERR a script has at most 64 keys";
static_assert(kMaxTransactionReads == 64, "as kTooManyScriptKeys says");

/// Nothing changes if the script fails.
Task run_script(Job& job, Reply& reply, std::string text) {
  const auto words = std::span<const std::string_view>(job.arguments).subspan(kCountWord + 1);
  std::int64_t number = 0;
  if (!parse_integer(job.arguments[kCountWord], number)) co_return kNotAnInteger;
  if (number < 0) co_return "ERR Number of keys can't be negative";
  const auto count = static_cast<std::size_t>(number);
  if (count > words.size()) co_return "ERR Number of keys can't be greater than number of args";
  if (count > kMaxTransactionReads) co_return kTooManyScriptKeys;
  std::vector<TransactionKey> keys;
  for (const std::string_view key : words.first(count)) add_key(keys, key);
  std::optional<KeyOverlay> overlay;
  std::string replies;
  co_await job.transact(keys, [&] {
    replies.clear();
    overlay.emplace(keys, job.outer);
    job.session->service().look_soon();
    ScriptRun run(*job.session, *overlay);
    if (!run.run(text, words.first(count), words.subspan(count), job.session->protocol(), replies))
      return false;
    if (!overlay->settle()) job.fail(kTooManyChanges);
    return job.error == nullptr;
  });
  co_return reply.raw(replies);
}

Task eval(Job& job, Reply& reply) {
  std::string text(job.arguments[1]);
  if (text.size() > kMaxScriptBytes) return refuse(job, reply, kScriptTooLong);
  job.session->service().scripts().add(text);
  return run_script(job, reply, std::move(text));
}

Task evalsha(Job& job, Reply& reply) {
  const std::string* const text = job.session->service().scripts().find(job.arguments[1]);
  if (text == nullptr) return refuse(job, reply, "NOSCRIPT No matching script. Please use EVAL.");
  return run_script(job, reply, *text);
}

// --- SCRIPT --------------------------------------------------------------------------------------

Task load(Job& job, Reply& reply) {
  const std::string text(job.arguments[2]);
  if (text.size() > kMaxScriptBytes) co_return kScriptTooLong;
  if (const std::string mistake = script_mistake(text); !mistake.empty())
    co_return reply.error("ERR Error compiling script (new function): " + mistake.substr(4));
  co_return reply.bulk(job.session->service().scripts().add(text));
}

Task exists(Job& job, Reply& reply) {
  reply.array(job.arguments.size() - 2);
  for (std::size_t i = 2; i < job.arguments.size(); ++i)
    reply.integer(job.session->service().scripts().find(job.arguments[i]) == nullptr ? 0 : 1);
  co_return Replied{};
}

Task flush(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() > 3 ||
      (words.size() == 3 && !is_word(words[2], "sync") && !is_word(words[2], "async")))
    co_return kSyntaxError;
  job.session->service().scripts().clear();
  co_return reply.ok();
}

constexpr std::array kSubcommands{
    Subcommand{"load", 3, load, "<script>: keeps it for EVALSHA, at this server"},
    Subcommand{"exists", -3, exists, "<sha1> ...: whether this server has the scripts"},
    Subcommand{"flush", -2, flush, "[SYNC|ASYNC]: forgets all scripts of this server"}};

Task script(Job& job, Reply& reply) { return run_subcommand(kSubcommands, job, reply); }

constexpr Command evaluates(std::string_view name, Task (*run)(Job&, Reply&)) {
  return {.name = name,
          .arity = -3,
          .shape = Shape::several_keys,
          .changes = true,
          .run = run,
          .last_key = 0,
          .key_count_word = kCountWord};
}

constexpr std::array kScriptCommands{evaluates("eval", eval), evaluates("evalsha", evalsha),
                                     at_once("script", -2, script)};

}  // namespace

std::span<const Command> script_commands() noexcept { return kScriptCommands; }

}  // namespace dunlin::app::resp
