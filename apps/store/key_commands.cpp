#include <array>
#include <string_view>

#include "store/command_table.hpp"
#include "store/session.hpp"
#include "store/string_value.hpp"

/// Commands on keys, whatever their type.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;

// --- DEL, EXISTS ---------------------------------------------------------------------------------

const char* begin_erase(Job& job) {
  job.order.kind = Order::Kind::erase;
  return nullptr;
}

bool count_if_found(Job& job, Reply&) {
  job.session->tally.number += job.call->found() ? 1 : 0;
  return true;
}

bool conclude_count(Job& job, Reply& reply) {
  const Session::Tally& tally = job.session->tally;
  if (tally.ending != Ending::ok) return conclude_tally(job, reply);
  return reply.integer(tally.number);
}

bool conclude_type(Job& job, Reply& reply) {
  return reply.simple(job.call->found() ? type_of(job.call->value()) : "none");
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

const char* begin_object(Job& job) {
  job.order.kind = Order::Kind::get;
  const std::string_view word = job.arguments[1];
  if (is_word(word, "encoding") || is_word(word, "refcount")) return nullptr;
  return "ERR unknown subcommand of OBJECT: ENCODING and REFCOUNT are possible";
}

bool conclude_object(Job& job, Reply& reply) {
  if (!job.call->found()) return reply.null();
  if (is_word(job.arguments[1], "encoding")) return reply.bulk(encoding_of(job.call->value()));
  return reply.integer(1);
}

const char* begin_memory(Job& job) {
  job.order.kind = Order::Kind::get;
  const auto& words = job.arguments;
  if (!is_word(words[1], "usage")) return "ERR unknown subcommand of MEMORY: USAGE is possible";
  std::int64_t samples = 0;
  if (words.size() == 3) return nullptr;
  if (words.size() != 5 || !is_word(words[3], "samples")) return kSyntaxError;
  if (!parse_integer(words[4], samples)) return kNotAnInteger;
  return samples < 0 ? kSyntaxError : nullptr;
}

bool conclude_memory(Job& job, Reply& reply) {
  const std::size_t bytes = kEntryBytes + job.order.key.size() + job.call->value().size();
  return job.call->found() ? reply.integer(static_cast<std::int64_t>(bytes)) : reply.null();
}

constexpr Command kErasePart = silent_part(-2, true, begin_erase, count_if_found);
constexpr Command kExistsPart = silent_part(-2, false, begin_read, count_if_found);

constexpr Command of_each_key(std::string_view name, const Command& part) {
  return {.name = name,
          .arity = -2,
          .shape = Shape::each_key,
          .changes = part.changes,
          .conclude = conclude_count,
          .part = &part};
}

constexpr std::array kKeyCommands{
    of_each_key("del", kErasePart),
    of_each_key("unlink", kErasePart),
    of_each_key("exists", kExistsPart),
    of_each_key("touch", kExistsPart),
    Command{"type", 2, Shape::one_key, false, begin_read, conclude_type},
    Command{.name = "object",
            .arity = 3,
            .shape = Shape::one_key,
            .changes = false,
            .begin = begin_object,
            .conclude = conclude_object,
            .first_key = 2},
    Command{.name = "memory",
            .arity = -3,
            .shape = Shape::one_key,
            .changes = false,
            .begin = begin_memory,
            .conclude = conclude_memory,
            .first_key = 2}};

}  // namespace

std::span<const Command> key_commands() noexcept { return kKeyCommands; }

}  // namespace dunlin::app::resp
