#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/limits.hpp>

#include "store/command_table.hpp"
#include "store/key_overlay.hpp"
#include "store/session.hpp"

/// MULTI, EXEC, DISCARD, WATCH and UNWATCH.
namespace dunlin::app::resp {
namespace {

using Shape = Command::Shape;
using WithinMulti = Command::WithinMulti;

Task multi(Job& job, Reply& reply) {
  Transaction& transaction = job.session->transaction();
  if (transaction.open && !transaction.refused) co_return "ERR MULTI calls can not be nested";
  transaction.open = true;
  transaction.broken = transaction.refused = false;
  co_return reply.ok();
}

Task discard(Job& job, Reply& reply) {
  if (!job.session->in_multi()) co_return "ERR DISCARD without MULTI";
  job.session->take_transaction();
  co_return reply.ok();
}

/// UNWATCH in a transaction does nothing: EXEC has ended the watch before.
Task unwatch(Job& job, Reply& reply) {
  job.session->take_transaction();
  co_return reply.ok();
}

// --- WATCH ---------------------------------------------------------------------------------------

Task watch_part(Job& job, Reply&) {
  if (job.session->in_multi()) co_return "ERR WATCH inside MULTI is not allowed";
  const Call& call = co_await job.get();
  if (const char* const wrong = job.session->transaction().watch(job.arguments[1], call.version()))
    co_return wrong;
  co_return Replied{};
}

// --- EXEC ----------------------------------------------------------------------------------------

bool has_changed(const Transaction::Watched& watched, std::span<const TransactionKey> keys) {
  return std::ranges::any_of(keys, [&](const TransactionKey& key) {
    return key.key == watched.key && key.version != watched.version;
  });
}

/// Returns the error if the commands have taken too much.
const char* run_all(const Transaction& transaction, Session& session, KeyOverlay& overlay,
                    std::string& replies) {
  for (const Transaction::Queued& queued : transaction.commands()) {
    const std::vector<std::string_view> words(queued.words.begin(), queued.words.end());
    if (const char* const wrong =
            overlay.run(*queued.command, session, words, session.protocol(), replies))
      return wrong;
  }
  return overlay.settle() ? nullptr : kTooManyChanges;
}

Task exec(Job& job, Reply& reply) {
  if (!job.session->in_multi()) co_return "ERR EXEC without MULTI";
  const std::unique_ptr<Transaction> transaction = job.session->take_transaction();
  if (transaction->broken) co_return "EXECABORT Transaction discarded because of previous errors.";
  std::vector<TransactionKey> keys;
  for (const std::string& key : transaction->keys()) add_key(keys, key);
  bool is_obsolete = false;  // a watched key has changed
  std::optional<KeyOverlay> overlay;
  std::string replies;
  co_await job.transact(keys, [&] {
    replies.clear();
    is_obsolete = std::ranges::any_of(transaction->watched(),
                                      [&](const auto& one) { return has_changed(one, keys); });
    if (is_obsolete) return false;
    overlay.emplace(keys);
    job.session->service().look_soon();
    job.error = run_all(*transaction, *job.session, *overlay, replies);
    return job.error == nullptr;
  });
  if (is_obsolete) co_return reply.null_array();
  reply.array(transaction->commands().size());
  co_return reply.raw(replies);
}

constexpr Command kWatchPart = silent_part(-2, false, watch_part);

constexpr std::array kTransactionCommands{at_once("multi", 1, multi, WithinMulti::acts),
                                          at_once("discard", 1, discard, WithinMulti::acts),
                                          at_once("unwatch", 1, unwatch, WithinMulti::waits),
                                          Command{.name = "watch",
                                                  .arity = -2,
                                                  .shape = Shape::each_key,
                                                  .changes = false,
                                                  .run = reply_tally,
                                                  .within_multi = WithinMulti::acts,
                                                  .part = &kWatchPart},
                                          Command{.name = "exec",
                                                  .arity = 1,
                                                  .shape = Shape::all_keys,
                                                  .changes = true,
                                                  .run = exec,
                                                  .within_multi = WithinMulti::acts}};

}  // namespace

std::span<const Command> transaction_commands() noexcept { return kTransactionCommands; }

}  // namespace dunlin::app::resp
