#include <array>
#include <span>
#include <string>

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

std::size_t key_count(const Job& job) noexcept {
  std::int64_t count = 0;
  static_cast<void>(parse_integer(job.arguments[kCountWord], count));  // the beginning has looked
  return static_cast<std::size_t>(count);
}

/// job.found has the text of the script. Nothing changes if it fails.
bool decide_eval(void* context, std::span<TransactionKey> keys) {
  Job& job = *static_cast<Job*>(context);
  job.error = nullptr;
  job.scratch.clear();
  job.overlay = std::make_shared<KeyOverlay>(keys, job.outer);
  KeyOverlay& overlay = *job.overlay;
  job.session->service().look_soon();
  ScriptRun run(*job.session, overlay);
  const auto words = std::span<const std::string_view>(job.arguments).subspan(kCountWord + 1);
  const std::size_t count = key_count(job);
  if (!run.run(job.found.front(), words.first(count), words.subspan(count), job.session->protocol(),
               job.scratch))
    return false;
  if (overlay.settle()) return true;
  job.error = kTooManyChanges;
  return false;
}

const char* begin_script(Job& job, const std::string& text) {
  std::int64_t count = 0;
  if (!parse_integer(job.arguments[kCountWord], count)) return kNotAnInteger;
  if (count < 0) return "ERR Number of keys can't be negative";
  if (count > static_cast<std::int64_t>(job.arguments.size() - kCountWord - 1))
    return "ERR Number of keys can't be greater than number of args";
  if (count > static_cast<std::int64_t>(kMaxTransactionReads)) return kTooManyScriptKeys;
  for (const std::string_view key : keys_of(*job.command, job.arguments)) job.add_key(key);
  job.found.assign(1, text);
  job.order_transaction(decide_eval);
  return nullptr;
}

const char* begin_eval(Job& job) {
  const std::string text(job.arguments[1]);
  if (text.size() > kMaxScriptBytes) return kScriptTooLong;
  job.session->service().scripts().add(text);
  return begin_script(job, text);
}

const char* begin_evalsha(Job& job) {
  const std::string* const text = job.session->service().scripts().find(job.arguments[1]);
  if (text == nullptr) return "NOSCRIPT No matching script. Please use EVAL.";
  return begin_script(job, *text);
}

bool conclude_eval(Job& job, Reply& reply) { return reply.raw(job.scratch); }

// --- SCRIPT --------------------------------------------------------------------------------------

bool load(Job& job, Reply& reply) {
  const std::string text(job.arguments[2]);
  if (text.size() > kMaxScriptBytes) return reply.error(kScriptTooLong);
  if (const std::string mistake = script_mistake(text); !mistake.empty())
    return reply.error("ERR Error compiling script (new function): " + mistake.substr(4));
  return reply.bulk(job.session->service().scripts().add(text));
}

bool exists(Job& job, Reply& reply) {
  reply.array(job.arguments.size() - 2);
  for (std::size_t i = 2; i < job.arguments.size(); ++i)
    reply.integer(job.session->service().scripts().find(job.arguments[i]) == nullptr ? 0 : 1);
  return true;
}

bool flush(Job& job, Reply& reply) {
  const auto& words = job.arguments;
  if (words.size() > 3 ||
      (words.size() == 3 && !is_word(words[2], "sync") && !is_word(words[2], "async"))) {
    reply.error(kSyntaxError);
  } else {
    job.session->service().scripts().clear();
    reply.ok();
  }
  return true;
}

constexpr std::array kSubcommands{
    Subcommand{"load", 3, load, "<script>: keeps it for EVALSHA, at this server"},
    Subcommand{"exists", -3, exists, "<sha1> ...: whether this server has the scripts"},
    Subcommand{"flush", -2, flush, "[SYNC|ASYNC]: forgets all scripts of this server"}};

bool script(Job& job, Reply& reply) { return conclude_subcommand(kSubcommands, job, reply); }

constexpr Command evaluates(std::string_view name, const char* (*begin)(Job&)) {
  return {.name = name,
          .arity = -3,
          .shape = Shape::several_keys,
          .changes = true,
          .begin = begin,
          .conclude = conclude_eval,
          .last_key = 0,
          .key_count_word = kCountWord};
}

constexpr std::array kScriptCommands{evaluates("eval", begin_eval),
                                     evaluates("evalsha", begin_evalsha),
                                     Command{.name = "script",
                                             .arity = -2,
                                             .shape = Shape::at_once,
                                             .changes = false,
                                             .conclude = script}};

}  // namespace

std::span<const Command> script_commands() noexcept { return kScriptCommands; }

}  // namespace dunlin::app::resp
