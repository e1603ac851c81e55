#include "store/multi.hpp"

#include <algorithm>

#include <dunlin/limits.hpp>

#include "store/command_table.hpp"
#include "store/service.hpp"

namespace dunlin::app::resp {
namespace {

constexpr const char* kTransactionTooLong =
    "ERR the commands since MULTI have over 8388608 bytes, which is the limit";
static_assert(kMaxRequestBytes == 8388608, "as kTransactionTooLong says");
constexpr const char* kTooManyKeys =
    "ERR a transaction reads at most 64 keys, those that are watched included";
static_assert(kMaxTransactionReads == 64, "as kTooManyKeys says");

}  // namespace

Transaction::~Transaction() { service_.give_back_input(bytes_); }

bool Transaction::add_key(std::string_view key) {
  if (std::ranges::find(keys_, key) != keys_.end()) return true;
  if (keys_.size() == kMaxTransactionReads) return false;
  keys_.emplace_back(key);
  return true;
}

const char* Transaction::queue(const Command& command, std::span<const std::string_view> words) {
  std::size_t bytes = sizeof(Queued);
  for (const std::string_view word : words) bytes += sizeof(std::string) + word.size();
  if (broken) return nullptr;  // EXEC will not do it
  broken = true;
  if (bytes_ + bytes > kMaxRequestBytes) return kTransactionTooLong;
  for (const std::string_view key : keys_of(command, words))
    if (!add_key(key)) return kTooManyKeys;
  if (!service_.take_input(bytes)) return "ERR the clients' requests take all memory for them";
  bytes_ += bytes;
  commands_.push_back({.command = &command, .words = {words.begin(), words.end()}});
  broken = false;
  return nullptr;
}

const char* Transaction::watch(std::string_view key, std::uint64_t version) {
  if (!add_key(key)) return kTooManyKeys;
  // What the client knows of the key is what it was when it was watched first.
  const bool is_watched = std::ranges::find(watched_, key, &Watched::key) != watched_.end();
  if (!is_watched) watched_.push_back({.key = std::string(key), .version = version});
  return nullptr;
}

}  // namespace dunlin::app::resp
