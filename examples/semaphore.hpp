#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote.hpp>

/// A Semaphore is a number of places that the members of a group take and give back: a word in the
/// memory of one member, its home, says how many are free. It is the example of docs/remote.md for
/// a layer of one's own. All members make one of the same name.
///
///     Semaphore licences(progress, {.name = "licences", .home = 0, .places = 2});
///     const Semaphore::Taken taken = licences.take(1'000'000'000).outcome();
///     if (taken.status == dunlin::remote::Status::ok) work();   // until `taken` is destroyed
///
/// Its calls and places must be gone before it is. A member that dies keeps its places: the word
/// does not say whose they are.
struct SemaphoreOptions {
  std::string name;
  dunlin::Rank home = 0;
  std::uint64_t places = 0;  // that are free at first
};

class Semaphore final : public dunlin::remote::Part {
 public:
  /// A place that this process has; its destructor gives it back.
  class Place {
   public:
    Place() = default;
    explicit Place(Semaphore& semaphore) noexcept : semaphore_(&semaphore) {}
    Place(Place&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(semaphore_, other.semaphore_);
      return *this;
    }
    ~Place() {
      if (semaphore_ != nullptr) semaphore_->give();
    }

   private:
    Semaphore* semaphore_ = nullptr;
  };
  struct Taken {
    dunlin::remote::Status status = dunlin::remote::Status::ok;
    Place place = {};
  };

  Semaphore(dunlin::remote::Progress& its_progress, const SemaphoreOptions& options)
      : progress(its_progress),
        fabric_(progress.fabric()),
        home_(options.home),
        word_(fabric_.allocate({.name = "semaphore:" + options.name, .bytes = 8})) {
    if (fabric_.rank() == home_)
      dunlin::memory::store(*reinterpret_cast<std::uint64_t*>(word_.memory().data()),
                            options.places);
    withdrawal_ = fabric_.subscribe([this](const dunlin::Event& event) {
      if (event.kind == dunlin::Event::Kind::region_withdrawn && event.region == word_.id() &&
          event.peer == home_)
        withdrawn_ = true;
    });
    fabric_.announce(word_);
    protocols_.start(give_back(), giver_);
    if (giver_ == nullptr) throw std::bad_alloc();
    progress.add(*this);
  }
  ~Semaphore() override { progress.remove(*this); }

  /// Waits for a place.
  dunlin::remote::Call<Taken> take(std::uint64_t timeout_ns = dunlin::remote::kForever) {
    return dunlin::remote::Call<Taken>(progress, wait_for_place(), timeout_ns);
  }
  /// Makes a place more.
  void give() noexcept {
    ++owed_;
    protocols_.advance(*giver_);
  }
  /// Whether all that was given has arrived, and no attempt is under way.
  [[nodiscard]] bool idle() const noexcept { return owed_ == 0 && protocols_.size() == 1; }

  std::size_t poll_part() override { return protocols_.advance(); }
  void members_changed() override {}

  dunlin::remote::Progress& progress;  // the frames of the protocols are from its free lists

 private:
  using Status = dunlin::remote::Status;
  template <class T>
  using Protocol = dunlin::remote::Protocol<T>;
  static constexpr std::uint64_t kShortestPauseNs = 1'000;
  static constexpr std::uint64_t kLongestPauseNs = 64'000;

  /// When an operation may be posted to the home.
  struct Gate {
    const Semaphore* semaphore;
    [[nodiscard]] Status now() const noexcept {
      const bool gone = semaphore->withdrawn_ || !semaphore->progress.contains(semaphore->home_);
      return gone ? Status::lost : Status::ok;
    }
    [[nodiscard]] Status refused() const noexcept { return Status::ok; }  // later, if not lost
    void posted() const noexcept {}
    void taken() const noexcept {}
  };
  [[nodiscard]] auto at_home(const dunlin::Operation& operation) noexcept {
    return dunlin::remote::post(fabric_, operation, Gate{this});
  }

  /// An attempt to take a place lives in the frame of wait_for_place(), and its compare-and-swap in
  /// that of try_to_take(). Either may go before the other.
  struct Swap;
  struct Attempt {
    Status status = Status::no_memory;  // unless the swap has another
    std::uint64_t found = 0;
    Swap* swap = nullptr;  // while it is under way
    Attempt() = default;
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt() {
      if (swap != nullptr) swap->attempt = nullptr;
    }
  };
  struct Swap {
    Attempt* attempt;  // null once it is given up
    std::uint64_t found = 0;
    explicit Swap(Attempt& its_attempt) noexcept : attempt(&its_attempt) { attempt->swap = this; }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;
    ~Swap() {
      if (attempt != nullptr) attempt->swap = nullptr;
    }
  };

  Protocol<Taken> wait_for_place() {
    std::uint64_t free = 1;  // a guess, which the home puts right
    std::uint64_t pause_ns = kShortestPauseNs;
    for (;;) {
      while (free > 0) {
        Attempt attempt;
        protocols_.start(try_to_take(attempt, free));
        co_await dunlin::remote::Until([&] { return attempt.swap == nullptr; });
        if (attempt.status != Status::ok) co_return Taken{attempt.status};
        if (attempt.found == free) co_return Taken{Status::ok, Place(*this)};
        free = attempt.found;
      }
      co_await dunlin::remote::UntilTime(fabric_, fabric_.now_ns() + pause_ns);
      pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
      free = 1;
    }
  }

  /// Nobody waits for this one. So it learns whether its compare-and-swap has taken a place, also
  /// if the call has been given up in the meantime.
  Protocol<Status> try_to_take(Attempt& attempt, std::uint64_t free) {
    Swap swap(attempt);
    const Status status =
        co_await at_home(dunlin::compare_swap(home_, word_.id(), 0, free, free - 1, &swap.found));
    if (swap.attempt != nullptr) {
      swap.attempt->status = status;
      swap.attempt->found = swap.found;
    } else if (status == Status::ok && swap.found == free) {
      give();
    }
    co_return status;
  }

  /// Runs as long as the semaphore, so that giving back needs no memory.
  Protocol<Status> give_back() {
    for (;;) {
      co_await dunlin::remote::Until([this] { return owed_ > 0; });
      const std::uint64_t places = owed_;
      std::uint64_t before = 0;
      static_cast<void>(co_await at_home(dunlin::fetch_add(home_, word_.id(), 0, places, &before)));
      owed_ -= places;  // if the home has gone, so have they
    }
  }

  dunlin::Fabric& fabric_;
  dunlin::Rank home_;
  dunlin::Region word_;
  dunlin::Subscription withdrawal_;
  bool withdrawn_ = false;
  std::uint64_t owed_ = 0;  // places that were given, and have yet to arrive
  dunlin::remote::Runs protocols_{progress};
  dunlin::remote::ProtocolState* giver_ = nullptr;
};
