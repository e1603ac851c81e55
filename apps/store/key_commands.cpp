#include <array>
#include <span>
#include <string_view>

#include "store/command_table.hpp"
#include "store/session.hpp"

/// Commands on keys, whatever their type.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- DEL, EXISTS ---------------------------------------------------------------------------------

Task erase_part(Job& job, Reply&) {
  const Call& former = co_await job.erase();
  job.session->tally.number += former.found() ? 1 : 0;
  co_return Replied{};
}

Task exists_part(Job& job, Reply&) {
  const Call& call = co_await job.get();
  job.session->tally.number += call.found() ? 1 : 0;
  co_return Replied{};
}

Task reply_count(Job& job, Reply& reply) {
  const Session::Tally& tally = job.session->tally;
  if (tally.ending != Ending::ok) co_return describe(tally.ending);
  co_return reply.integer(tally.number);
}

Task type(Job& job, Reply& reply) {
  const Call& call = co_await job.get();
  co_return reply.simple(call.found() ? type_of(call.value()) : "none");
}

// --- OBJECT, MEMORY ------------------------------------------------------------------------------

constexpr std::size_t kEmbeddedBytes = 44;  // up to here Redis says embstr, and raw beyond
constexpr std::size_t kEntryBytes = 40;     // the store's own, beside key and value

/// What Redis would say of a small value: nobody sees how Dunlin keeps it.
std::string_view encoding_of(std::string_view value) noexcept {
  std::int64_t number = 0;
  if (type_of(value) != "string") return "listpack";
  if (parse_integer(value, number)) return "int";
  return value.size() <= kEmbeddedBytes ? "embstr" : "raw";
}

Task object(Job& job, Reply& reply) {
  const bool asks_encoding = is_word(job.arguments[1], "encoding");
  if (!asks_encoding && !is_word(job.arguments[1], "refcount"))
    co_return "ERR unknown subcommand of OBJECT: ENCODING and REFCOUNT are possible";
  const Call& call = co_await job.get();
  if (!call.found()) co_return reply.null();
  if (asks_encoding) co_return reply.bulk(encoding_of(call.value()));
  co_return reply.integer(1);
}

const char* parse_memory(std::span<const std::string_view> words) {
  if (!is_word(words[1], "usage")) return "ERR unknown subcommand of MEMORY: USAGE is possible";
  std::int64_t samples = 0;
  if (words.size() == 3) return nullptr;
  if (words.size() != 5 || !is_word(words[3], "samples")) return kSyntaxError;
  if (!parse_integer(words[4], samples)) return kNotAnInteger;
  return samples < 0 ? kSyntaxError : nullptr;
}

Task memory(Job& job, Reply& reply) {
  if (const char* const wrong = parse_memory(job.arguments)) co_return wrong;
  const Call& call = co_await job.get();
  if (!call.found()) co_return reply.null();
  const std::size_t bytes = kEntryBytes + job.arguments[2].size() + call.value().size();
  co_return reply.integer(static_cast<std::int64_t>(bytes));
}

constexpr Command kErasePart = silent_part(-2, true, erase_part);
constexpr Command kExistsPart = silent_part(-2, false, exists_part);

constexpr Command of_each_key(std::string_view name, const Command& part) {
  return {.name = name,
          .arity = -2,
          .shape = Shape::each_key,
          .changes = part.changes,
          .run = reply_count,
          .part = &part};
}

constexpr std::array kKeyCommands{of_each_key("del", kErasePart),
                                  of_each_key("unlink", kErasePart),
                                  of_each_key("exists", kExistsPart),
                                  of_each_key("touch", kExistsPart),
                                  Command{"type", 2, Shape::one_key, false, type},
                                  Command{.name = "object",
                                          .arity = 3,
                                          .shape = Shape::one_key,
                                          .changes = false,
                                          .run = object,
                                          .first_key = 2},
                                  Command{.name = "memory",
                                          .arity = -3,
                                          .shape = Shape::one_key,
                                          .changes = false,
                                          .run = memory,
                                          .first_key = 2}};

}  // namespace

std::span<const Command> key_commands() noexcept { return kKeyCommands; }

}  // namespace dunlin::app::resp
