#include <numeric>

#include <dunlin/container/words.hpp>
#include <dunlin/error.hpp>

#include "container/hub.hpp"

namespace dunlin {

using remote::Status;

namespace container {

struct WordsState {
  WordsState(Containers& its_containers, const std::string& kind, const std::string& name,
             std::uint64_t bytes, const std::string& layout, std::uint64_t capacity)
      : containers(its_containers),
        hub(its_containers.hub()),
        site(hub, kind, name, bytes, kind + "\n" + layout),
        counters(hub.counters, kind, name, capacity, nullptr) {
    site.announce();
  }
  Containers& containers;
  Hub& hub;
  Site site;
  ContainerCounters counters;
};

WordsCore::WordsCore(Containers& containers, const std::string& kind, const std::string& name,
                     std::uint64_t bytes, const std::string& layout, std::uint64_t capacity) {
  check_name(kind, name);
  if (bytes == 0 || bytes > kMaxRegionBytes)
    throw Error(kind + " '" + name + "': a member's part has 1 to " +
                std::to_string(kMaxRegionBytes) + " bytes (kMaxRegionBytes)");
  state_ = std::make_unique<WordsState>(containers, kind, name, bytes, layout, capacity);
}

WordsCore::~WordsCore() = default;
Containers& WordsCore::containers() const noexcept { return state_->containers; }
std::span<std::byte> WordsCore::own() const noexcept { return state_->site.own(); }

WordsOperation::WordsOperation(WordsCore& words) noexcept
    : ContainerOperation(words.state_->hub), words_(*words.state_) {}

void WordsOperation::begin(Kind kind, Rank home, std::uint64_t offset) noexcept {
  ++words_.counters.one_sided;
  kind_ = kind;
  home_ = home;
  offset_ = offset;
  waits_ = false;
  expected_ = before_ = 0;
  start();
}

void WordsOperation::begin_read(Rank home, std::uint64_t offset, void* memory,
                                std::size_t bytes) noexcept {
  abandon();
  memory_ = memory;
  bytes_ = bytes;
  begin(Kind::read, home, offset);
}

void WordsOperation::begin_write(Rank home, std::uint64_t offset, const void* memory,
                                 std::size_t bytes) noexcept {
  abandon();
  memory_ = const_cast<void*>(memory);
  bytes_ = bytes;
  begin(Kind::write, home, offset);
}

void WordsOperation::begin_add(Rank home, std::uint64_t offset, std::uint64_t add) noexcept {
  abandon();
  operand_ = add;
  begin(Kind::add, home, offset);
}

void WordsOperation::begin_set_bits(Rank home, std::uint64_t offset, std::uint64_t bits) noexcept {
  abandon();
  operand_ = bits;
  begin(Kind::set_bits, home, offset);
}

void WordsOperation::begin_read_all(std::uint64_t offset, std::uint64_t* words) noexcept {
  abandon();
  memory_ = words;
  begin(Kind::read_all, 0, offset);
}

Operation WordsOperation::next_operation() noexcept {
  const RegionId region = words_.site.region();
  switch (kind_) {
    case Kind::read:
      return dunlin::read(home_, region, offset_, memory_, bytes_).notify(completion_);
    case Kind::write:
      return dunlin::write(home_, region, offset_, memory_, bytes_)
          .notify(completion_, Notify::remotely);
    case Kind::add:
      return fetch_add(home_, region, offset_, operand_, &before_).notify(completion_);
    case Kind::set_bits:
      if (expected_ == 0)  // nothing is known of the word
        return compare_swap(home_, region, offset_, 0, operand_, &before_).notify(completion_);
      return compare_swap(home_, region, offset_, expected_, expected_ | operand_, &before_)
          .notify(completion_);
    case Kind::read_all:
      break;
  }
  return dunlin::read(home_, region, offset_, static_cast<std::uint64_t*>(memory_) + home_,
                      kWordBytes)
      .notify(completion_);
}

/// A compare-and-swap that failed has read the word.
bool WordsOperation::complete() noexcept {
  if (kind_ == Kind::read_all) return ++home_ == words_.hub.progress.size();
  if (kind_ != Kind::set_bits) return true;
  const bool changed = before_ == expected_;
  expected_ = before_;
  return changed || (before_ & operand_) == operand_;
}

bool WordsOperation::post(const Operation& operation) noexcept {
  std::size_t accepted = 0;
  switch (words_.site.post(home_, std::span(&operation, 1), accepted)) {
    case Site::Posted::all:
      return true;
    case Site::Posted::later:
      return false;
    case Site::Posted::never:
      break;
  }
  const Status fault = words_.site.fault(home_);
  end(fault != Status::ok ? fault : Status::out_of_range);
  return false;
}

void WordsOperation::advance() noexcept {
  for (;;) {
    if (completion_.failed()) return end(Status::lost);
    if (waits_ && complete()) return end(Status::ok);
    waits_ = false;
    if (const Status fault = words_.site.fault(home_); fault != Status::ok) return end(fault);
    if (!post(next_operation())) return;
    waits_ = true;
    if (!completion_.finished()) return;
  }
}

}  // namespace container

Counter::Counter(Containers& containers, const CounterOptions& options)
    : options_(options),
      core_(containers, "counter", options.name, kWordBytes,
            options.sharded ? "sharded" : "host " + std::to_string(options.host), 1) {
  if (!options.sharded && options.host >= containers.fabric().size())
    throw Error("counter '" + options.name + "': the group has no member " +
                std::to_string(options.host));
}

Counter::Operation::Operation(Counter& counter)
    : WordsOperation(counter.core_),
      counter_(counter),
      words_(counter.options_.sharded ? counter.core_.members() : 1) {}

void Counter::Operation::add(std::uint64_t value) noexcept {
  const Rank self = counter_.core_.containers().fabric().rank();
  begin_add(counter_.options_.sharded ? self : counter_.options_.host, 0, value);
}

void Counter::Operation::read() noexcept {
  if (counter_.options_.sharded) return begin_read_all(0, words_.data());
  begin_read(counter_.options_.host, 0, words_.data(), kWordBytes);
}

std::uint64_t Counter::Operation::value() const noexcept {
  return std::accumulate(words_.begin(), words_.end(), std::uint64_t{0});
}

}  // namespace dunlin
