#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "store/command_table.hpp"
#include "store/job.hpp"
#include "store/limits.hpp"
#include "store/multi.hpp"
#include "store/reply.hpp"
#include "store/request_parser.hpp"
#include "store/service.hpp"

namespace dunlin::app::resp {

/// A Session is what a connection says and is told: bytes in, bytes out. It has no socket.
///
///     read into session.input_room(); session.received(n);
///     session.proceed();                       // again when the service says that it can go on
///     write session.output(); session.output_sent(n);
///     if (session.can_proceed()) ...           // and so on from session.proceed()
///
///  RSP-S1  A job's arguments point into the input, which does not move while there are jobs.
///  RSP-S2  A session that waits has something that will wake it: a call of its own, a place among
///          the waiters for a call, a place among the runnable sessions, bytes that its client has
///          to take, or bytes that it has to send.
class Session {
 public:
  Session(Service& service, std::uint64_t id);
  /// Abandons the commands under way.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Where to read to. Empty while the session can take nothing.
  [[nodiscard]] std::span<char> input_room();
  void received(std::size_t bytes) noexcept { end_ += bytes; }
  /// Does all that can be done now.
  void proceed();
  [[nodiscard]] std::string_view output() const noexcept {
    return std::string_view(output_).substr(sent_);
  }
  void output_sent(std::size_t bytes);
  /// The memory that replies take.
  [[nodiscard]] std::size_t output_capacity() const noexcept { return output_.capacity(); }

  [[nodiscard]] bool wants_input() const noexcept;
  /// Whether the connection must be closed once the output is sent.
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  /// The client is gone: nothing more is begun.
  void abandon() noexcept { closing_ = abandoned_ = true; }
  /// No command is under way, and none that has come is left to be begun.
  [[nodiscard]] bool idle() const noexcept {
    return jobs_ == 0 && (closing_ || command_ == nullptr);
  }

  /// The last proceed() stopped because of output that is sent by now.
  [[nodiscard]] bool can_proceed() const noexcept { return held_back_ && !backlogged(); }

  // --- for commands ------------------------------------------------------------------------------
  /// What the parts of a command with several keys add up to.
  struct Tally {
    std::int64_t number = 0;
    Ending ending = Ending::ok;
    const char* error = nullptr;
  };
  Tally tally;
  std::string name;     // CLIENT SETNAME
  std::string address;  // the client's, for CLIENT LIST
  [[nodiscard]] Service& service() const noexcept { return service_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] Protocol protocol() const noexcept { return reply_.protocol(); }
  [[nodiscard]] const std::string& mistake() const noexcept { return parser_.mistake(); }
  [[nodiscard]] bool authenticated() const noexcept { return authenticated_; }
  void authenticate() noexcept;
  void close_after_reply() noexcept { closing_ = true; }
  /// Between MULTI and EXEC.
  [[nodiscard]] bool in_multi() const noexcept { return transaction_ && transaction_->open; }
  [[nodiscard]] Transaction& transaction() {
    if (!transaction_) transaction_ = std::make_unique<Transaction>(service_);
    return *transaction_;
  }
  /// Forgets its commands, and the keys that are watched.
  std::unique_ptr<Transaction> take_transaction() noexcept { return std::move(transaction_); }
  /// How many commands wait for EXEC.
  [[nodiscard]] std::size_t queued() const noexcept {
    return transaction_ ? transaction_->commands().size() : 0;
  }
  /// Makes the session as that of a new connection.
  void reset();
  /// By the clock of KeyValues: the beginning of the connection, and its last request.
  [[nodiscard]] std::uint64_t began_ms() const noexcept { return began_ms_; }
  [[nodiscard]] std::uint64_t asked_ms() const noexcept { return asked_ms_; }
  /// Goes on with a job whose call has ended. Returns false if it has ordered a further one.
  bool conclude(Job& job, Reply& reply);

  bool marked_runnable = false;  // the service's

 private:
  bool find_request();
  const Command* choose_command();
  const Command* choose_refusal(const Command* command) const;
  bool start_next();
  bool start_each_key();
  bool start_job(const Command& command, std::span<const std::string_view> arguments);
  void run_at_once();
  void finish_request();
  [[nodiscard]] bool conflicts(const Command& command, std::size_t key_hash) const noexcept;
  [[nodiscard]] bool has_time() { return !service_.is_due() || wait_for_poll(); }
  bool wait_for_poll();
  void retire();
  void start_call(Job& job);
  [[nodiscard]] Job& head() noexcept { return *queue_[first_]; }
  void pop();
  [[nodiscard]] bool backlogged() const noexcept { return output_.size() - sent_ >= kMaxBacklog; }
  void make_room();
  void drop_input() noexcept;

  Service& service_;
  std::uint64_t id_;
  RequestParser parser_;
  bool authenticated_ = false;
  std::uint64_t began_ms_;
  std::uint64_t asked_ms_;
  bool closing_ = false;
  bool abandoned_ = false;

  // The input: bytes that are not parsed yet are from begin_ to end_.
  std::unique_ptr<char[]> input_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  // The request that is there, and is not begun, or only in part.
  const Command* command_ = nullptr;
  std::size_t next_part_ = 0;     // each_key: the argument of the next part; 0: not begun
  bool words_in_parser_ = false;  // jobs have arguments in the parser, which is in use until then
  Job at_once_;
  std::unique_ptr<Transaction> transaction_;  // null: nothing is queued, and nothing watched

  std::array<std::unique_ptr<Job>, kMaxJobs> queue_;  // a ring
  std::size_t first_ = 0;
  std::size_t jobs_ = 0;

  std::string output_;
  Reply reply_{output_, Protocol::resp2};
  std::size_t sent_ = 0;
  bool held_back_ = false;  // the last proceed() stopped because of the backlog
};

}  // namespace dunlin::app::resp
