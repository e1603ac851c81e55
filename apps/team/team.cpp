#include "team/team.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "team/cores.hpp"

namespace dunlin::app {

namespace {

constexpr int kLostStatus = 2;  // ended because another had
constexpr std::chrono::milliseconds kUntilThatOneIsSeen{500};

/// An exchange on the page that all processes of a host share.
class InMemoryExchange final : public TeamExchange {
 public:
  InMemoryExchange(TeamMemory& memory, std::uint32_t rank, std::uint32_t size)
      : memory_(memory), rank_(rank), size_(size) {}

  void arrive(std::string_view word) override {
    if (!word.empty()) {
      std::memcpy(memory_.words[rank_].data(), word.data(), word.size());
      memory_.words[rank_][word.size()] = '\0';
    }
    generation_ = memory_.generation.word.load(std::memory_order_acquire);
    if (memory_.arrived.word.fetch_add(1, std::memory_order_acq_rel) + 1 != size_) return;
    memory_.arrived.word.store(0, std::memory_order_relaxed);
    memory_.generation.word.store(generation_ + 1, std::memory_order_release);
  }
  bool all_here() override {
    return memory_.generation.word.load(std::memory_order_acquire) != generation_;
  }
  [[nodiscard]] std::string word_of(std::uint32_t rank) const override {
    return memory_.words.at(rank).data();
  }

 private:
  TeamMemory& memory_;
  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint64_t generation_ = 0;
};

void write_text(std::array<char, kTextBytes>& to, std::string_view text) {
  std::snprintf(to.data(), to.size(), "%.*s", static_cast<int>(text.size()), text.data());
}

/// A process that waits for long leaves the core to those that work.
void wait_a_little(std::uint32_t times) {
  constexpr std::uint32_t kYields = 4'000;
  constexpr timespec kNap{0, 100'000};
  if (times < kYields) {
    sched_yield();
  } else {
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace

void Member::meet() {
  exchange_->arrive({});
  for (std::uint32_t times = 0; !exchange_->all_here(); ++times) wait_a_little(times);
}

void Member::meet(const std::function<void()>& progress) {
  exchange_->arrive({});
  while (!exchange_->all_here()) {
    progress();
    sched_yield();
  }
}

std::vector<std::string> Member::exchange(std::string_view word,
                                          const std::function<void()>& progress) {
  if (word.size() >= kExchangedBytes) throw Error("a word that is too long for an exchange");
  exchange_->arrive(word);
  while (!exchange_->all_here()) {
    progress();
    sched_yield();
  }
  std::vector<std::string> words;
  for (std::uint32_t rank = 0; rank < size_; ++rank) words.push_back(exchange_->word_of(rank));
  meet(progress);
  return words;
}

void Member::note(std::string_view text) { write_text(memory_.note, text); }

void Member::lost(std::uint32_t rank, std::string_view why) {
  if (!needs_others_) return;
  const std::string text = "member " + std::to_string(rank) + " is gone: " + std::string(why);
  write_text(memory_.errors[rank_], text);
  ::_exit(kLostStatus);
}

void Member::record(std::uint32_t series, double value) {
  if (series >= kMaxSeries || memory_.rounds[series] >= kMaxRounds) {
    throw Error("more than " + std::to_string(kMaxSeries) + " series or " +
                std::to_string(kMaxRounds) + " rounds; use fewer --rounds");
  }
  memory_.samples[series][memory_.rounds[series]++] = value;
}

Team::Team(TeamOptions options) : options_(options) {
  if (options_.processes == 0 || options_.processes > kMaxTeam) {
    throw Error("a team has 1 to " + std::to_string(kMaxTeam) + " processes, not " +
                std::to_string(options_.processes));
  }
  if (options_.pin) cores_ = usable_cores();
  // A doomed process makes do with what the others leave.
  if (cores_.size() < options_.processes - (options_.doomed ? 1 : 0)) cores_.clear();
  void* memory = ::mmap(nullptr, sizeof(TeamMemory), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(std::string("no shared memory for a team: ") + strerror(errno));
  memory_ = new (memory) TeamMemory;
}

Team::~Team() { ::munmap(memory_, sizeof(TeamMemory)); }

std::span<const double> Team::series(std::uint32_t index) const {
  if (options_.host == 0 && memory_->rounds.at(index) == 0) {
    throw Error("nobody has recorded series " + std::to_string(index));
  }
  return recorded(index);
}

std::span<const double> Team::recorded(std::uint32_t index) const {
  return std::span(memory_->samples.at(index)).first(memory_->rounds.at(index));
}

void Team::run(const std::function<void(Member&)>& body) {
  process::Children members;
  for (std::uint32_t rank = options_.host; rank < options_.processes; rank += options_.hosts)
    members.start([this, rank, &body] { return become_member(rank, body); });
  await(members);
}

int Team::become_member(std::uint32_t rank, const std::function<void(Member&)>& body) {
  int status = 0;
  try {
    if (rank < cores_.size()) pin_to(cores_[rank]);
    std::unique_ptr<TeamExchange> exchange;
    if (options_.hosts > 1) {
      exchange = options_.exchange(rank);
    } else {
      exchange = std::make_unique<InMemoryExchange>(*memory_, rank, options_.processes);
    }
    Member me(*memory_, std::move(exchange), rank, options_.processes);
    body(me);
  } catch (const std::exception& error) {
    write_text(memory_->errors[rank], error.what());
    status = 1;
  }
  std::fflush(nullptr);
  return status;
}

std::string Team::complaint(std::uint32_t rank, process::Status status) const {
  if (status.well()) return {};
  if (options_.doomed == rank && status.exit_code() == -SIGKILL) return {};
  const std::string error = memory_->errors[rank].data();
  return "process " + std::to_string(rank) + " of " + std::to_string(options_.processes) + " " +
         (status.exit_code() < 0 || error.empty() ? status.text() : "failed: " + error);
}

void Team::await(process::Children& members) {
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  const int others = options_.watch == nullptr ? -1 : options_.watch->descriptor();
  std::string loss;  // how another ended says more
  while (members.running() > 0) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (!members.await({others}, loss.empty() ? rest : std::min(rest, kUntilThatOneIsSeen))) {
      if (!loss.empty()) break;
      throw Error(std::to_string(members.running()) + " of " + std::to_string(options_.processes) +
                  " processes did not finish within " + std::to_string(options_.timeout.count()) +
                  " ms; all were ended");
    }
    if (options_.watch != nullptr) options_.watch->demand_others();
    for (const auto& [index, status] : members.ended()) {
      const auto rank = static_cast<std::uint32_t>(options_.host + index * options_.hosts);
      const std::string text = complaint(rank, status);
      if (text.empty()) continue;
      if (status.exit_code() != kLostStatus) throw Error(text);
      if (loss.empty()) loss = text;
    }
  }
  if (!loss.empty()) throw Error(loss);
}

}  // namespace dunlin::app
