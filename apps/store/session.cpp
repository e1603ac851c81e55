#include "store/session.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "assert.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kKeptOutputBytes = std::size_t{1} << 14;

std::string printable_word(std::string_view word) { return std::string(word.substr(0, 128)); }

Task reply_mistake(Job& job, Reply& reply) {
  reply.error(job.session->mistake());
  job.session->close_after_reply();
  co_return Replied{};
}

/// The request is not there any more.
Task reply_too_long(Job& job, Reply& reply) {
  reply.error(job.session->mistake());
  if (job.session->in_multi()) job.session->transaction().broken = true;
  co_return Replied{};
}

Task reply_unknown(Job& job, Reply& reply) {
  std::string text =
      "ERR unknown command '" + printable_word(job.arguments[0]) + "', with args beginning with: ";
  for (std::size_t i = 1; i < job.arguments.size() && text.size() < 256; ++i)
    text += "'" + printable_word(job.arguments[i]) + "' ";
  co_return reply.error(text);
}

Task reply_wrong_arity(Job& job, Reply& reply) {
  std::string name(job.arguments[0]);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  co_return reply.error("ERR wrong number of arguments for '" + name + "' command");
}

Task reply_no_password(Job&, Reply&) { co_return "NOAUTH Authentication required."; }

/// A web page can make a browser send a request to a port of its own host: such requests begin so.
Task reply_to_browser(Job& job, Reply&) {
  job.session->close_after_reply();
  co_return "ERR this is a store, and no web server";
}

Task reply_queued(Job& job, Reply& reply) {
  Transaction& transaction = job.session->transaction();
  if (transaction.refused)
    co_return "EXECABORT MULTI was refused, so this command is not carried out";
  if (const char* const wrong = transaction.queue(*find_command(job.arguments[0]), job.arguments))
    co_return wrong;
  co_return reply.simple("QUEUED");
}

Task reply_not_in_multi(Job&, Reply&) { co_return "ERR Command not allowed inside a transaction"; }

constexpr Command kMistake{"", -1, Command::Shape::at_once, false, reply_mistake};
constexpr Command kRefused{"", -1, Command::Shape::at_once, false, reply_too_long};
constexpr Command kUnknown{"", -1, Command::Shape::at_once, false, reply_unknown};
constexpr Command kWrongArity{"", -1, Command::Shape::at_once, false, reply_wrong_arity};
constexpr Command kNoPassword{"", -1, Command::Shape::at_once, false, reply_no_password};
constexpr Command kBrowser{"", -1, Command::Shape::at_once, false, reply_to_browser};
constexpr Command kQueue{"", -1, Command::Shape::at_once, false, reply_queued};
constexpr Command kNotInMulti{"", -1, Command::Shape::at_once, false, reply_not_in_multi};

/// RSP-J3.
Ending end_of(const Job& job) noexcept {
  const Ending ending = job.call->ending();
  return ending == Ending::lost && job.order.kind == Order::Kind::scan ? Ending::ok : ending;
}

}  // namespace

Session::Session(Service& service, std::uint64_t id)
    : service_(service), id_(id), began_ms_(service.values().unix_ms()), asked_ms_(began_ms_) {
  reset();
  service_.add(*this);
}

Session::~Session() {
  while (jobs_ > 0) pop();
  drop_input();
  service_.forget(*this);
}

void Session::authenticate() noexcept {
  authenticated_ = true;
  parser_.set_stranger(false);
}

// --- input ---------------------------------------------------------------------------------------

std::span<char> Session::input_room() {
  if (!wants_input()) return {};
  make_room();
  return {input_.get() + end_, capacity_ - end_};
}

bool Session::wants_input() const noexcept {
  const bool fixed = jobs_ > 0 || command_ != nullptr;
  return !closing_ && !backlogged() && !(fixed && end_ == capacity_);
}

/// Makes room behind what is there. Where the input may not move there is room (wants_input).
void Session::make_room() {
  if (end_ < capacity_) return;
  const std::size_t bytes = end_ - begin_;
  const std::size_t wanted = std::max({bytes + 1, parser_.bytes_needed(), 2 * bytes, kInputBytes});
  if (wanted <= capacity_) {
    std::memmove(input_.get(), input_.get() + begin_, bytes);
  } else {
    if (!service_.take_input(wanted)) {
      closing_ = true;  // all connections together have too much
      return;
    }
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    if (bytes > 0) std::memcpy(larger.get(), input_.get() + begin_, bytes);
    service_.give_back_input(capacity_);
    input_ = std::move(larger);
    capacity_ = wanted;
  }
  begin_ = 0;
  end_ = bytes;
}

void Session::drop_input() noexcept {
  service_.give_back_input(capacity_);
  input_.reset();
  capacity_ = begin_ = end_ = 0;
}

// --- requests ------------------------------------------------------------------------------------

void Session::proceed() {
  retire();
  while (!closing_ && !backlogged() && find_request() && has_time() && start_next()) retire();
  held_back_ = backlogged();
  const bool used_up = begin_ == end_ && command_ == nullptr && jobs_ == 0;
  if (used_up && capacity_ > kInputBytes) {
    drop_input();
  } else if (used_up) {
    begin_ = end_ = 0;
  }
}

/// RSP-S2: a session that stops because the store has to be polled goes on after that.
bool Session::wait_for_poll() {
  service_.make_runnable(*this);
  return false;
}

/// Whether there is one that is not begun, or only in part.
bool Session::find_request() {
  while (command_ == nullptr) {
    if (words_in_parser_ && jobs_ > 0) return false;
    words_in_parser_ = false;
    if (begin_ == end_) return false;
    switch (parser_.parse({input_.get() + begin_, end_ - begin_})) {
      case RequestParser::Parsed::part:
        return false;
      case RequestParser::Parsed::skipped:
        begin_ += parser_.bytes();
        break;
      case RequestParser::Parsed::refused:
        command_ = &kRefused;
        return true;
      case RequestParser::Parsed::mistake:
        command_ = &kMistake;
        return true;
      case RequestParser::Parsed::request:
        if (parser_.arguments().empty()) {
          finish_request();
        } else {
          words_in_parser_ = input_[begin_] != '*';
          command_ = choose_command();
        }
    }
  }
  return true;
}

/// A refused command breaks the transaction that it belongs to, a refused MULTI the one that its
/// client takes for begun: nothing of such a transaction is carried out.
const Command* Session::choose_command() {
  ++service_.counters().commands;
  asked_ms_ = service_.values().unix_ms();
  service_.saw_clock(asked_ms_);
  const Command* const command = find_command(parser_.arguments()[0]);
  const Command* const refusal = choose_refusal(command);
  if (refusal == &kNoPassword) return refusal;
  if (refusal != nullptr) {
    if (!in_multi() && !is_word(parser_.arguments()[0], "multi")) return refusal;
    if (!in_multi()) transaction().refused = true;
    transaction().open = transaction().broken = true;
    return refusal;
  }
  const bool waits = command->within_multi != Command::WithinMulti::acts;
  return in_multi() && waits ? &kQueue : command;
}

/// Null if the command can be carried out.
const Command* Session::choose_refusal(const Command* command) const {
  const std::span<const std::string_view> words = parser_.arguments();
  if (command == nullptr)
    return is_word(words[0], "post") || is_word(words[0], "host:") ? &kBrowser : &kUnknown;
  if (!arity_fits(*command, words.size())) return &kWrongArity;
  if (!authenticated_ && !command->open_to_strangers) return &kNoPassword;
  const bool is_allowed = command->within_multi == Command::WithinMulti::acts ||
                          (command->within_multi == Command::WithinMulti::waits &&
                           command->shape != Command::Shape::all_keys);
  return in_multi() && !is_allowed ? &kNotInMulti : nullptr;
}

void Session::reset() {
  authenticated_ = service_.options().password.empty();
  parser_.set_stranger(!authenticated_);
  take_transaction();
  reply_.use(Protocol::resp2);
  name.clear();
}

void Session::finish_request() {
  begin_ += parser_.bytes();
  parser_.next();
  command_ = nullptr;
  next_part_ = 0;
}

/// Returns false if it has to wait.
bool Session::start_next() {
  switch (command_->shape) {
    case Command::Shape::at_once:
      if (jobs_ > 0) return false;
      run_at_once();
      return true;
    case Command::Shape::each_key:
      return start_each_key();
    case Command::Shape::several_keys:
    case Command::Shape::all_keys:
      if (jobs_ > 0) return false;
      break;
    case Command::Shape::one_key:
      break;
  }
  if (!start_job(*command_, parser_.arguments())) return false;
  finish_request();
  return true;
}

void Session::run_at_once() {
  at_once_.begin(*command_, *this, parser_.arguments());
  at_once_.task = command_->run(at_once_, reply_);
  DUNLIN_ASSERT(at_once_.task.done(), "a command of the shape at_once awaits nothing");
  conclude(at_once_, reply_);
  at_once_.task.end();
  finish_request();
}

bool Session::start_each_key() {
  const std::span<const std::string_view> words = parser_.arguments();
  if (next_part_ == 0) {
    if (jobs_ > 0) return false;
    tally = {};
    if (command_->is_array) reply_.array(words.size() - 1);
    next_part_ = 1;
  }
  if (next_part_ < words.size()) {
    // The part's name is the word before it: no part looks at it.
    const std::size_t count = 1 + command_->words_of_part;
    if (!start_job(*command_->part, words.subspan(next_part_ - 1, count))) return false;
    next_part_ += command_->words_of_part;
    return true;
  }
  if (jobs_ > 0) return false;
  if (command_->run != nullptr) {
    run_at_once();
  } else {
    finish_request();
  }
  return true;
}

/// RSP-C2.
bool Session::conflicts(const Command& command, std::size_t key_hash) const noexcept {
  for (std::size_t i = 0; i < jobs_; ++i) {
    const Job& job = *queue_[(first_ + i) % kMaxJobs];
    const bool done = job.state == Job::State::ended && !job.command->several_steps;
    const bool is_on_all = job.command->shape != Command::Shape::one_key;
    if (done || (!is_on_all && job.key_hash != key_hash)) continue;
    if (job.command->changes || (command.changes && !is_on_all)) return true;
  }
  return false;
}

bool Session::start_job(const Command& command, std::span<const std::string_view> arguments) {
  if (jobs_ == kMaxJobs) return false;
  std::size_t key_hash = 0;
  if (command.shape == Command::Shape::one_key) {
    key_hash = jobs_ > 0 || command.several_steps
                   ? std::hash<std::string_view>()(arguments[command.first_key])
                   : 0;
    if (jobs_ > 0 && conflicts(command, key_hash)) return false;
  }
  Call* const call = service_.take_call(*this);
  if (call == nullptr) return false;
  queue_[(first_ + jobs_) % kMaxJobs] = service_.take_job();
  Job& job = *queue_[(first_ + jobs_) % kMaxJobs];
  ++jobs_;
  job.begin(command, *this, arguments);
  job.key_hash = key_hash;
  job.call = call;
  call->owner = &job;
  if (command.shape == Command::Shape::one_key) job.order.key = arguments[command.first_key];
  job.task = command.run(job, reply_);
  if (job.task.done()) {
    DUNLIN_ASSERT(command.shape != Command::Shape::one_key || job.error != nullptr,
                  "RSP-J2: a command on one key writes nothing before its first call has ended");
    job.state = Job::State::ended;
  } else {
    start_call(job);
  }
  if (job.key_hash == 0 && job.state != Job::State::ended)
    job.key_hash = std::hash<std::string_view>()(job.order.key);
  return true;
}

void Session::start_call(Job& job) {
  job.state = Job::State::under_way;
  if (job.call->start(job.order)) job.state = Job::State::ended;
}

// --- replies -------------------------------------------------------------------------------------

/// Replies of what has ended, as far as nothing before it is under way (RSP-C1).
void Session::retire() {
  while (jobs_ > 0 && head().state == Job::State::ended && !(backlogged() && !abandoned_) &&
         has_time()) {
    if (conclude(head(), reply_)) {
      pop();
    } else {
      start_call(head());
    }
  }
  if (abandoned_) {
    output_.clear();
    sent_ = 0;
  }
}

bool Session::conclude(Job& job, Reply& reply) {
  Ending ending = Ending::ok;
  if (job.error == nullptr && !job.task.done()) {
    ending = end_of(job);
    if (ending == Ending::ok) job.task.resume();
    if (ending == Ending::ok && !job.task.done()) return false;
  }
  if (job.command->is_silent_part) {
    if (tally.error == nullptr) tally.error = job.error;
    if (tally.ending == Ending::ok) tally.ending = ending;
  } else if (job.error != nullptr || ending != Ending::ok) {
    reply.error(job.error != nullptr ? job.error : describe(ending));
  }
  return true;
}

void Session::pop() {
  std::unique_ptr<Job> job = std::move(queue_[first_]);
  first_ = (first_ + 1) % kMaxJobs;
  --jobs_;
  service_.give_back(*job->call);
  service_.give_back(std::move(job));
}

void Session::output_sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ < output_.size()) {
    if (sent_ < std::max(kMaxBacklog, output_.size() / 2)) return;
    output_.erase(0, sent_);
    sent_ = 0;
    return;
  }
  output_.clear();
  sent_ = 0;
  if (output_.capacity() > kKeptOutputBytes) output_.shrink_to_fit();
}

}  // namespace dunlin::app::resp
