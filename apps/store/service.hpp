#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/job.hpp"
#include "store/key_values.hpp"
#include "store/limits.hpp"
#include "store/scripts.hpp"

namespace dunlin::app::resp {

class Session;

/// 40 hexadecimal digits, which no other server has.
[[nodiscard]] std::string make_run_id();

struct ServiceOptions {
  std::string password = {};  // empty: none is asked for
  std::uint32_t port = 0;     // for INFO
  std::string run_id = make_run_id();
};

struct ServiceCounters {
  std::uint64_t connections = 0;  // since the start
  std::uint64_t clients = 0;      // now
  std::uint64_t rejected = 0;     // connections, as there are too many
  std::uint64_t commands = 0;
  std::uint64_t waits_for_calls = 0;  // a session found kMaxCalls under way
  std::uint64_t sleeps = 0;           // the server had nothing to do
};

/// The objects that the sessions of one server share: the store, the calls on it, and the sessions
/// that can go on. One thread uses it.
class Service {
 public:
  Service(KeyValues& values, ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] KeyValues& values() const noexcept { return values_; }
  [[nodiscard]] const ServiceOptions& options() const noexcept { return options_; }
  [[nodiscard]] ServiceCounters& counters() noexcept { return counters_; }
  /// Resets all counters but those of the present state.
  void reset_counters() noexcept { counters_ = {.clients = counters_.clients}; }
  [[nodiscard]] const std::string& run_id() const noexcept { return options_.run_id; }
  [[nodiscard]] Scripts& scripts() noexcept { return scripts_; }
  [[nodiscard]] std::uint64_t started_ms() const noexcept { return started_ms_; }
  /// Takes as long whatever the two have in common.
  [[nodiscard]] bool is_password(std::string_view text) const noexcept;

  /// Polls the store; returns how much was done. Calls that end make their sessions able to go on.
  std::size_t poll();
  /// The thread has worked for kMaxWorkMs since poll(): what is left waits for the next poll().
  [[nodiscard]] bool is_due() noexcept { return --looks_left_ == 0 ? look_at_clock() : is_due_; }
  /// The next is_due() looks at the clock, because a script or a transaction has run.
  void look_soon() noexcept { looks_left_ = 1; }
  /// A session has read the clock of the values: the first time since poll() is where work began.
  void saw_clock(std::uint64_t now_ms) noexcept {
    if (began_ms_ == kUnknown) began_ms_ = now_ms;
    is_due_ = is_due_ || now_ms - began_ms_ > kMaxWorkMs;
  }
  /// Sessions for which something has happened since they were last taken; each once.
  [[nodiscard]] std::vector<Session*> take_runnable() noexcept {
    return std::exchange(runnable_, {});
  }
  /// These of the sessions taken have had no turn: they are the first next time.
  void put_back(std::span<Session* const> sessions) {
    runnable_.insert(runnable_.begin(), sessions.begin(), sessions.end());
  }
  [[nodiscard]] bool has_runnable() const noexcept { return !runnable_.empty(); }
  void make_runnable(Session& session);
  void add(Session& session);
  void forget(Session& session) noexcept;
  /// By their numbers.
  [[nodiscard]] const std::map<std::uint64_t, Session*>& sessions() const noexcept {
    return sessions_;
  }

  // --- for sessions ------------------------------------------------------------------------------
  [[nodiscard]] std::unique_ptr<Job> take_job();
  void give_back(std::unique_ptr<Job> job) noexcept;
  /// Null if kMaxCalls are out; then the session becomes runnable when one comes back.
  [[nodiscard]] Call* take_call(Session& waiter);
  void give_back(Call& call);
  /// Takes memory for a connection's input; false if all connections together would have too much.
  [[nodiscard]] bool take_input(std::size_t bytes) noexcept;
  void give_back_input(std::size_t bytes) noexcept { input_bytes_ -= bytes; }

 private:
  static constexpr std::uint64_t kUnknown = UINT64_MAX;
  static constexpr std::uint32_t kLooksAClock = 32;  // looks of is_due() for one at the clock
  bool look_at_clock() noexcept;

  KeyValues& values_;
  ServiceOptions options_;
  ServiceCounters counters_;
  std::uint64_t started_ms_;
  Scripts scripts_;
  std::map<std::uint64_t, Session*> sessions_;
  std::size_t input_bytes_ = 0;
  std::vector<std::unique_ptr<Call>> calls_;  // all
  std::vector<Call*> free_calls_;
  std::vector<std::unique_ptr<Job>> free_jobs_;
  std::deque<Session*> waiters_;  // sessions that wait for a call
  std::vector<Session*> runnable_;
  std::uint64_t began_ms_ = kUnknown;  // the work since poll()
  std::uint32_t looks_left_ = kLooksAClock;
  bool is_due_ = false;
};

}  // namespace dunlin::app::resp
