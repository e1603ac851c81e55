#include "store/command_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "store/session.hpp"

namespace dunlin::app::resp {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

const std::vector<const Command*>& sorted_commands() {
  static const std::vector<const Command*> sorted = [] {
    std::vector<const Command*> all;
    for (const auto& commands :
         {string_commands(), number_commands(), key_commands(), expiry_commands(),
          several_keys_commands(), all_keys_commands(), hash_commands(), hash_change_commands(),
          sorted_set_commands(), sorted_set_range_commands(), transaction_commands(),
          script_commands(), connection_commands(), client_commands(), config_commands(),
          info_commands(), cluster_commands(), member_commands()})
      for (const Command& command : commands) all.push_back(&command);
    std::ranges::sort(all, {}, &Command::name);
    return all;
  }();
  return sorted;
}

/// The commands by a hash of their names, in slots of which at most half are taken.
class CommandIndex {
 public:
  CommandIndex() {
    for (const Command* const command : sorted_commands()) {
      std::size_t slot = first_slot(command->name);
      while (slots_[slot] != nullptr) slot = (slot + 1) % kSlots;
      slots_[slot] = command;
    }
  }

  [[nodiscard]] const Command* find(std::string_view name) const noexcept {
    for (std::size_t slot = first_slot(name); slots_[slot] != nullptr; slot = (slot + 1) % kSlots)
      if (is_word(name, slots_[slot]->name)) return slots_[slot];
    return nullptr;
  }

 private:
  static constexpr std::size_t kSlots = 512;
  static constexpr std::size_t kHashedBytes = 16;

  static std::size_t first_slot(std::string_view name) noexcept {
    constexpr std::size_t kCaseBit = 0x20;  // letters without regard to their case
    std::size_t hash = name.size();
    for (const char c : name.substr(0, kHashedBytes))
      hash = hash * 31 + (static_cast<unsigned char>(c) | kCaseBit);
    return hash % kSlots;
  }

  std::array<const Command*, kSlots> slots_{};
};

/// Whether `c` is in the class that begins behind its bracket at `at`; `at` moves behind the class.
bool in_class(std::string_view pattern, std::size_t& at, char c) noexcept {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    char first = pattern[at++];
    char last = first;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      last = pattern[at + 1];
      at += 2;
    }
    if (first > last) std::swap(first, last);
    found = found || (first <= c && c <= last);
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

/// Whether what stands at `at`, which is no asterisk, stands for `c`; moves `at` behind it.
bool matches_one(std::string_view pattern, std::size_t& at, char c) noexcept {
  const char p = pattern[at++];
  if (p == '?') return true;
  if (p == '[') return in_class(pattern, at, c);
  if (p == '\\' && at < pattern.size()) return pattern[at++] == c;
  return p == c;
}

}  // namespace

std::span<const Command* const> all_commands() noexcept { return sorted_commands(); }

const Command* find_command(std::string_view name) noexcept {
  static const CommandIndex index;
  return index.find(name);
}

std::vector<std::string_view> keys_of(const Command& command,
                                      std::span<const std::string_view> arguments) {
  std::vector<std::string_view> keys;
  std::size_t first = command.first_key;
  std::size_t last = arguments.size() - 1;
  std::int64_t count = 0;
  switch (command.shape) {
    case Command::Shape::at_once:
    case Command::Shape::all_keys:
      return keys;
    case Command::Shape::one_key:
      last = first;
      break;
    case Command::Shape::each_key:
      break;
    case Command::Shape::several_keys:
      if (command.last_key != 0) last = command.last_key;
      if (command.key_count_word == 0) break;
      if (!parse_integer(arguments[command.key_count_word], count) || count < 0 ||
          count >= static_cast<std::int64_t>(arguments.size() - command.key_count_word))
        return keys;
      first = command.key_count_word + 1;
      last = command.key_count_word + static_cast<std::size_t>(count);
  }
  for (std::size_t i = first; i <= last && i < arguments.size(); i += command.words_of_part)
    keys.push_back(arguments[i]);
  return keys;
}

bool arity_fits(const Command& command, std::size_t words) noexcept {
  const auto count = static_cast<int>(words);
  if (command.arity >= 0 ? count != command.arity : count < -command.arity) return false;
  return command.shape != Command::Shape::each_key || (words - 1) % command.words_of_part == 0;
}

Task reply_tally(Job& job, Reply& reply) {
  const Session::Tally& tally = job.session->tally;
  if (tally.error != nullptr) co_return tally.error;
  if (tally.ending != Ending::ok) co_return describe(tally.ending);
  co_return reply.ok();
}

bool is_word(std::string_view text, std::string_view wanted) noexcept {
  if (text.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (lower(text[i]) != wanted[i]) return false;
  return true;
}

bool parse_integer(std::string_view text, std::int64_t& number) noexcept {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return false;
  const std::string_view digits = text.front() == '-' ? text.substr(1) : text;
  return digits.front() != '0' || text.size() == 1;
}

/// Goes back to the last asterisk only, which is enough: so it takes at most pattern times text.
bool matches(std::string_view pattern, std::string_view text) noexcept {
  constexpr std::size_t kNone = SIZE_MAX;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t behind_star = kNone;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && matches_one(pattern, p, text[t])) {
      ++t;
      continue;
    }
    if (behind_star == kNone) return false;
    p = behind_star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const char* describe(Ending ending) noexcept {
  switch (ending) {
    case Ending::ok:
      break;
    case Ending::lost:
      return "CLUSTERDOWN the member that holds the key has failed";
    case Ending::no_room:
      return "OOM the member that holds the key has no room for it: erase keys, or start the "
             "members "
             "with more --memory, of which a quarter is for values over 32 KB, or with --eviction "
             "lru; if its CONFIG GET maxmemory is not 0, raise that";
    case Ending::too_large:
      return "ERR the key or the value is too long: 255 and 1048576 bytes are possible";
    case Ending::bad_cursor:
      return "ERR invalid cursor";
    case Ending::out_of_range:
      return "ERR the index of the member that holds the key is damaged";
    case Ending::conflict:
      return "ERR other commands have changed the keys of the transaction at each attempt: nothing "
             "has happened, try again";
    case Ending::too_many:
      return kTooManyChanges;
    case Ending::undeclared:
      return "ERR the script uses a key that is not among its KEYS";
    case Ending::stopped:
      return "ERR this server is no member of its group any more: connect to another member";
  }
  return "OK";
}

}  // namespace dunlin::app::resp
