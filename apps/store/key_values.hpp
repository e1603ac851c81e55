#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/store/placement.hpp>

/// The key-value store as the Redis commands see it: calls that are under way until they end. The
/// command has dunlin::Store behind it (store_values.hpp), the tests a map of their own.
namespace dunlin::app::resp {

/// Time to live, from now on.
inline constexpr std::uint64_t kForeverNs = UINT64_MAX;
inline constexpr std::uint64_t kKeepTtl = UINT64_MAX - 1;  // leaves the time to live as it is

/// The change of an update to its key.
struct Change {
  enum class Action : std::uint8_t { keep, put, erase };
  Action action = Action::keep;
  std::string_view value = {};  // stays until the next decision, or the call's end
  std::uint64_t ttl_ns = kKeepTtl;
};

[[nodiscard]] constexpr Change put(std::string_view value,
                                   std::uint64_t ttl_ns = kKeepTtl) noexcept {
  return {.action = Change::Action::put, .value = value, .ttl_ns = ttl_ns};
}
inline constexpr Change kErase{.action = Change::Action::erase};

/// A key of a transaction: as it is, and what becomes of it.
struct TransactionKey {
  std::string_view key;
  bool found = false;
  std::string_view value = {};  // stays until the next decision, or the call's end
  std::uint64_t ttl_ns = kForeverNs;
  std::uint64_t version = 0;
  Change change = {};
};

/// The request.
struct Order {
  enum class Kind : std::uint8_t {
    get,
    put,
    insert,   // only if the key is absent
    replace,  // puts only if the key is there
    erase,
    update,    // does what `decide` says, with no other change of the key in between
    expire,    // sets the time to live
    count,     // counts all keys
    scan,      // finds some keys behind the cursor
    transact,  // does what `decide_keys` says, with no other change of the keys in between
    settle     // waits until no key is left to be moved to another member
  };
  using Decide = Change (*)(void* context, std::optional<std::string_view> current);
  /// Fills in the changes of the keys; returns false if none of them is to happen.
  using DecideKeys = bool (*)(void* context, std::span<TransactionKey> keys);

  Kind kind = Kind::get;
  std::string_view key = {};
  std::string_view value = {};
  std::uint64_t ttl_ns = kForeverNs;
  Decide decide = nullptr;           // may be called more than once
  DecideKeys decide_keys = nullptr;  // may be called more than once
  std::span<TransactionKey> keys = {};
  void* context = nullptr;
  std::uint64_t cursor = 0;
  bool with_values = false;  // for a scan
};

enum class Ending : std::uint8_t {
  ok,
  lost,       // the key's member has failed
  no_room,    // that member has no memory left
  too_large,  // the key, or the value
  bad_cursor,
  out_of_range,  // the index of the key's member leads to what is not there
  conflict,      // other calls have changed the keys of a transaction again and again
  too_many,      // keys of a transaction
  undeclared,    // a script has not named the key
  stopped        // this process is no member any more, or the store is another one's
};

/// Makes one call at a time. The values that it found stay until it starts again, or is released.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  /// Returns whether it has ended. If not, `on_end` is called when it has, within
  /// KeyValues::poll(). Key and value stay as they are until then.
  virtual bool start(const Order& order) = 0;
  /// Gives back what a large value took. A call that is under way is given up: its change has
  /// happened as a whole, or not at all.
  virtual void release() = 0;

  [[nodiscard]] virtual Ending ending() const = 0;
  [[nodiscard]] virtual bool found() const = 0;
  [[nodiscard]] virtual bool changed() const = 0;
  [[nodiscard]] virtual std::string_view value() const = 0;
  [[nodiscard]] virtual std::uint64_t ttl_ns() const = 0;
  /// Each change gives the key a higher one; 0: it is absent.
  [[nodiscard]] virtual std::uint64_t version() const = 0;
  [[nodiscard]] virtual std::uint64_t keys() const = 0;  // for a count
  // For a scan: where it goes on (0: it is over), and the keys. If a member is lost, the scan goes
  // on behind that member.
  [[nodiscard]] virtual std::uint64_t cursor() const = 0;
  [[nodiscard]] virtual std::size_t entries() const = 0;
  [[nodiscard]] virtual std::string_view entry_key(std::size_t i) const = 0;
  [[nodiscard]] virtual std::string_view entry_value(std::size_t i) const = 0;

  std::function<void(Call&)> on_end;
  void* owner = nullptr;  // the caller's
};

/// The limit of this member's memory.
struct MemoryLimit {
  std::uint64_t bytes = 0;  // 0: all that there is
  bool evicts = false;      // instead of refusing what has no room
};

/// Where a member of the store serves clients.
struct ServedAt {
  Rank rank = 0;
  std::string id = {};    // 40 hexadecimal digits, which no other server has
  std::string name = {};  // the member's
  std::string host = {};  // a name, or an address
  std::uint32_t port = 0;
  friend bool operator==(const ServedAt&, const ServedAt&) = default;
};

class KeyValues {
 public:
  KeyValues() = default;
  KeyValues(const KeyValues&) = delete;
  KeyValues& operator=(const KeyValues&) = delete;
  virtual ~KeyValues() = default;

  [[nodiscard]] virtual std::unique_ptr<Call> make_call() = 0;
  /// Makes progress; returns how much was done. May throw Error: the store cannot go on.
  virtual std::size_t poll() = 0;
  /// How many calls are under way.
  [[nodiscard]] virtual std::size_t under_way() const = 0;
  /// The events that must end a sleep: all that poll() looks at.
  [[nodiscard]] virtual Waits waits() const = 0;
  /// Names and values for INFO.
  [[nodiscard]] virtual std::map<std::string, std::string> figures() const = 0;
  [[nodiscard]] virtual MemoryLimit memory_limit() const = 0;
  /// 0: all that there is.
  virtual void limit_memory(std::uint64_t bytes) = 0;

  // --- the members of the store ------------------------------------------------------------------
  [[nodiscard]] virtual Rank self() const = 0;
  /// How many members hold each key.
  [[nodiscard]] virtual std::uint32_t copies() const = 0;
  /// Which members hold how many of the keys.
  [[nodiscard]] virtual StorePlacement placement() const = 0;
  /// The members that serve clients, by rank; this one is among them.
  [[nodiscard]] virtual std::vector<ServedAt> servers() const = 0;
  /// From now on this member has its share of the keys, or hands all of them to others. Returns the
  /// error if that cannot be; null if it can.
  [[nodiscard]] virtual const char* hold_keys(bool holds) = 0;

  /// Since 1970.
  [[nodiscard]] virtual std::uint64_t unix_ns() const = 0;
  [[nodiscard]] std::uint64_t unix_ms() const { return unix_ns() / 1'000'000; }
};

}  // namespace dunlin::app::resp
