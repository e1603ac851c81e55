#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "store/key_values.hpp"
#include "store/reply.hpp"
#include "store/typed_value.hpp"

/// A command is a coroutine, written from top to bottom: it orders calls on the store, awaits their
/// ends, and holds its state in local variables.
///
///     Task hlen(Job& job, Reply& reply) {
///       const auto hash = co_await job.read(kHashMark);
///       if (!hash) co_return kWrongType;
///       co_return reply.integer(HashFields::count(*hash));
///     }
///
///  RSP-J1  A command co_returns what it has written to the reply, or the error that is its reply.
///  RSP-J2  A command on one key begins before the replies of earlier commands are written: up to
///          its first co_await it writes nothing, and can only co_return an error.
///  RSP-J3  A call that fails ends the command that awaits it. The reply is the error of the
///          decision, or else that of the call. Only a scan goes on if a member is lost.
///  RSP-J4  What a call has found, and what a decision has put, stays until the next co_await.
namespace dunlin::app::resp {

struct Command;
struct Job;
class KeyOverlay;
class Session;

/// A command that has begun. Its frame is in the memory of its job.
class [[nodiscard]] Task {
 public:
  struct Promise;
  using promise_type = Promise;  // the name that the language requires
  using Handle = std::coroutine_handle<Promise>;

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() { end(); }

  [[nodiscard]] bool done() const noexcept { return handle_.done(); }
  void resume() const { handle_.resume(); }
  /// Ends the command where it is.
  void end() noexcept {
    if (const Handle handle = std::exchange(handle_, nullptr)) handle.destroy();
  }

 private:
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

/// Awaits the end of the call that a job has ordered.
class CallEnd {
 public:
  explicit CallEnd(const Call& call) noexcept : call_(call) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  const Call& await_resume() const noexcept { return call_; }

 protected:
  const Call& call_;
};

class ReadEnd : public CallEnd {
 public:
  ReadEnd(const Call& call, std::string_view mark) noexcept : CallEnd(call), mark_(mark) {}
  [[nodiscard]] std::optional<std::string_view> await_resume() const noexcept {
    if (!call_.found()) return std::string_view();
    return has_type(call_.value(), mark_) ? std::optional(call_.value()) : std::nullopt;
  }

 private:
  std::string_view mark_;
};

template <class Decide>
class UpdateEnd;
template <class Decide>
class TransactionEnd;

/// A Job is one command of a session, or what it does to one of its keys, from its start until its
/// reply is written.
struct Job {
  enum class State : std::uint8_t { under_way, ended };

  const Command* command = nullptr;
  Session* session = nullptr;
  State state = State::under_way;
  std::vector<std::string_view> arguments;  // the command's name first; in the session's input
  Call* call = nullptr;
  Order order;  // of the call that the command awaits
  std::size_t key_hash = 0;
  KeyOverlay* outer = nullptr;  // belongs to the transaction that runs this command
  const char* error = nullptr;  // the reply of a command that has failed
  std::unique_ptr<std::byte[]> frame;
  std::size_t frame_bytes = 0;
  Task task;

  // --- for the command: orders, to be awaited ----------------------------------------------------
  [[nodiscard]] CallEnd await_call(Order::Kind kind) noexcept {
    order.kind = kind;
    return CallEnd(*call);
  }
  [[nodiscard]] CallEnd get() noexcept { return await_call(Order::Kind::get); }
  /// Reads a value of the type that has this mark. The result is empty if the key is absent, and
  /// nothing if the key has another type.
  [[nodiscard]] ReadEnd read(std::string_view mark) noexcept {
    order.kind = Order::Kind::get;
    return {*call, mark};
  }
  /// `kind` is put, insert or replace.
  [[nodiscard]] CallEnd put(std::string_view value, std::uint64_t ttl_ns = kForeverNs,
                            Order::Kind kind = Order::Kind::put) noexcept {
    order.value = value;
    order.ttl_ns = ttl_ns;
    return await_call(kind);
  }
  [[nodiscard]] CallEnd erase() noexcept { return await_call(Order::Kind::erase); }
  [[nodiscard]] CallEnd erase(std::string_view key) noexcept {
    order.key = key;
    return erase();
  }
  /// The key is erased if it has no time to live.
  [[nodiscard]] CallEnd set_ttl(std::uint64_t ttl_ns) noexcept {
    order.ttl_ns = ttl_ns;
    return await_call(ttl_ns == 0 ? Order::Kind::erase : Order::Kind::expire);
  }
  /// Changes a value of the type that has this mark, as decide(current) says, which may be asked
  /// more than once: `current` is nothing if the key is absent. Fails if it has another type.
  template <class Decide>
  [[nodiscard]] UpdateEnd<Decide> update(std::string_view mark, Decide decide) noexcept {
    return {*this, mark, std::move(decide)};
  }
  [[nodiscard]] CallEnd count() noexcept { return await_call(Order::Kind::count); }
  [[nodiscard]] CallEnd settle() noexcept { return await_call(Order::Kind::settle); }
  [[nodiscard]] CallEnd scan(std::uint64_t cursor, bool with_values = false) noexcept {
    order.cursor = cursor;
    order.with_values = with_values;
    return await_call(Order::Kind::scan);
  }
  /// Changes the keys as decide() says, which may be asked more than once: it fills in the changes,
  /// and returns false if none of them is to happen.
  template <class Decide>
  [[nodiscard]] TransactionEnd<Decide> transact(std::vector<TransactionKey>& keys,
                                                Decide decide) noexcept {
    return {*this, keys, std::move(decide)};
  }
  /// The error of a decision, which then changes nothing.
  Change fail(const char* why) noexcept {
    error = why;
    return {};
  }

  // --- for what runs the command -----------------------------------------------------------------
  /// Makes it the job of a command that has not run yet.
  void begin(const Command& its_command, Session& its_session,
             std::span<const std::string_view> words) {
    command = &its_command;
    session = &its_session;
    state = State::under_way;
    arguments.assign(words.begin(), words.end());
    order.key = {};  // an order sets all else that its kind has
    error = nullptr;
  }
  /// The memory of the command's frame, which is kept for the next one.
  [[nodiscard]] void* take_frame(std::size_t bytes) {
    if (bytes > frame_bytes) {
      frame = std::make_unique_for_overwrite<std::byte[]>(bytes);
      frame_bytes = bytes;
    }
    return frame.get();
  }
};

struct Task::Promise {
  template <class... More>
  explicit Promise(Job& its_job, More&&...) noexcept : job(its_job) {}

  template <class... More>
  static void* operator new(std::size_t bytes, Job& job, More&&...) {
    return job.take_frame(bytes);
  }
  static void operator delete(void*, std::size_t) noexcept {}  // the job keeps it

  Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_value(Replied) noexcept {}
  void return_value(const char* error) noexcept { job.error = error; }
  void unhandled_exception() { throw; }

  Job& job;
};

template <class Decide>
class UpdateEnd : public CallEnd {
 public:
  UpdateEnd(Job& job, std::string_view mark, Decide decide) noexcept
      : CallEnd(*job.call), job_(job), mark_(mark), decide_(std::move(decide)) {}
  void await_suspend(std::coroutine_handle<>) noexcept {
    job_.order.kind = Order::Kind::update;
    job_.order.decide = decide;
    job_.order.context = this;
  }

 private:
  static Change decide(void* context, std::optional<std::string_view> current) {
    auto& update = *static_cast<UpdateEnd*>(context);
    update.job_.error = nullptr;
    if (current && !has_type(*current, update.mark_)) return update.job_.fail(kWrongType);
    return update.decide_(current);
  }

  Job& job_;
  std::string_view mark_;
  Decide decide_;
};

template <class Decide>
class TransactionEnd : public CallEnd {
 public:
  TransactionEnd(Job& job, std::vector<TransactionKey>& keys, Decide decide) noexcept
      : CallEnd(*job.call), job_(job), keys_(keys), decide_(std::move(decide)) {}
  void await_suspend(std::coroutine_handle<>) noexcept {
    job_.order.kind = Order::Kind::transact;
    job_.order.keys = keys_;
    job_.order.decide_keys = decide;
    job_.order.context = this;
  }

 private:
  static bool decide(void* context, std::span<TransactionKey>) {
    auto& transaction = *static_cast<TransactionEnd*>(context);
    transaction.job_.error = nullptr;
    return transaction.decide_();
  }

  Job& job_;
  std::vector<TransactionKey>& keys_;
  Decide decide_;
};

/// A command that has failed, for a function that is no coroutine itself.
inline Task refuse(Job&, Reply&, const char* error) { co_return error; }

/// The place of a key among those of a transaction, to which it is added.
inline std::size_t add_key(std::vector<TransactionKey>& keys, std::string_view key) {
  const auto at = std::ranges::find(keys, key, &TransactionKey::key);
  if (at != keys.end()) return static_cast<std::size_t>(at - keys.begin());
  keys.push_back({.key = key});
  return keys.size() - 1;
}

}  // namespace dunlin::app::resp
