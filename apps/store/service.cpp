#include "store/service.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "store/limits.hpp"
#include "store/session.hpp"

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kKeptJobs = 4096;
constexpr std::size_t kKeptArguments = 64;

}  // namespace

std::string make_run_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 5; ++i) id += fmt::format("{:08x}", random());
  return id;
}

Service::Service(KeyValues& values, ServiceOptions options)
    : values_(values), options_(std::move(options)), started_ms_(values.unix_ms()) {}

bool Service::is_password(std::string_view text) const noexcept {
  const std::string& right = options_.password;
  std::size_t difference = text.size() ^ right.size();
  for (std::size_t i = 0; i < right.size(); ++i) {
    const char given = text.empty() ? '\0' : text[i % text.size()];
    difference |= static_cast<std::size_t>(static_cast<unsigned char>(given ^ right[i]));
  }
  return difference == 0;
}

void Service::make_runnable(Session& session) {
  if (session.marked_runnable) return;
  session.marked_runnable = true;
  runnable_.push_back(&session);
}

void Service::add(Session& session) {
  sessions_.emplace(session.id(), &session);
  ++counters_.connections;
  ++counters_.clients;
}

void Service::forget(Session& session) noexcept {
  sessions_.erase(session.id());
  --counters_.clients;
  std::erase(runnable_, &session);
  std::erase(waiters_, &session);
}

std::unique_ptr<Job> Service::take_job() {
  if (free_jobs_.empty()) return std::make_unique<Job>();
  std::unique_ptr<Job> job = std::move(free_jobs_.back());
  free_jobs_.pop_back();
  return job;
}

void Service::give_back(std::unique_ptr<Job> job) noexcept {
  const bool is_large = job->arguments.capacity() > kKeptArguments;
  if (is_large || free_jobs_.size() >= kKeptJobs) return;
  job->task.end();
  free_jobs_.push_back(std::move(job));
}

Call* Service::take_call(Session& waiter) {
  if (free_calls_.empty()) {
    if (calls_.size() >= kMaxCalls) {
      ++counters_.waits_for_calls;
      if (std::ranges::find(waiters_, &waiter) == waiters_.end()) waiters_.push_back(&waiter);
      return nullptr;
    }
    calls_.push_back(values_.make_call());
    calls_.back()->on_end = [this](Call& call) {
      Job& job = *static_cast<Job*>(call.owner);
      job.state = Job::State::ended;
      make_runnable(*job.session);
    };
    free_calls_.push_back(calls_.back().get());
  }
  Call* const call = free_calls_.back();
  free_calls_.pop_back();
  return call;
}

void Service::give_back(Call& call) {
  call.release();
  call.owner = nullptr;
  free_calls_.push_back(&call);
}

/// Woken anew in each poll while there are calls: one that was woken may need none any more.
std::size_t Service::poll() {
  std::size_t done = values_.poll();
  began_ms_ = kUnknown;
  is_due_ = false;
  for (std::size_t free = free_calls_.size(); free > 0 && !waiters_.empty(); --free, ++done) {
    make_runnable(*waiters_.front());
    waiters_.pop_front();
  }
  return done;
}

bool Service::look_at_clock() noexcept {
  looks_left_ = kLooksAClock;
  saw_clock(values_.unix_ms());
  return is_due_;
}

bool Service::take_input(std::size_t bytes) noexcept {
  if (input_bytes_ + bytes > kMaxAllInputBytes) return false;
  input_bytes_ += bytes;
  return true;
}

}  // namespace dunlin::app::resp
