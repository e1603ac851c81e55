#include <algorithm>
#include <optional>
#include <vector>

#include "bench/fabric/bare.hpp"
#include "bench/fabric/verbs/bare_pair.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kConnections = 8;

class BareVerbs final : public Bare {
 public:
  BareVerbs(Member& me, const std::string& address) {
    if (me.rank() == 0) {
      listener_.emplace(address);
      static_cast<void>(me.exchange(address + " " + std::to_string(listener_->port())));
      while (pairs_.size() < kConnections) pairs_.push_back(listener_->accept());
      sleeper_.push_back(listener_->accept(Signals::wake));
      return;
    }
    const std::string word = me.exchange({}).front();
    if (me.rank() > 1) return;
    const std::size_t space = word.find(' ');
    const std::string there = word.substr(0, space);
    const int port = std::stoi(word.substr(space + 1));
    while (pairs_.size() < kConnections) pairs_.emplace_back(there, port);
    sleeper_.emplace_back(there, port, Signals::wake);
  }

  Time one_way(Member& me, const Batches& plan, std::size_t bytes) override {
    // A word travels in the signal itself.
    return halved(exchange(me, plan, pairs_, bytes > 8 ? bytes : 0));
  }

  Time fetch(Member& me, const Batches& plan, std::size_t bytes) override {
    me.meet();
    if (me.rank() != 0) return std::nullopt;
    return batch_ns(plan, [&] { pairs_.front().read(bytes); });
  }

  /// Without atomics nothing is shorter than asking and being answered.
  Time add(Member& me, const Batches& plan, Atomics) override {
    if (me.rank() > 1 || !pairs_.front().has_atomics()) return exchange(me, plan, pairs_, 0);
    me.meet();
    if (me.rank() != 0) return std::nullopt;
    return batch_ns(plan, [&] { pairs_.front().add(); });
  }

  Time stream(Member& me, std::size_t bytes, std::uint32_t items, std::uint32_t at_once) override {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    BarePair& pair = pairs_.front();
    if (me.rank() == 1) {
      pair.await();
      pair.signal();
      return std::nullopt;
    }
    const double start = now_ns();
    for (std::uint32_t left = items; left > 0; left -= std::min(left, at_once))
      pair.write(bytes, std::min(left, at_once));
    pair.signal();
    pair.await();
    return (now_ns() - start) / items;
  }

  Time spread(Member& me, const Batches& plan, std::uint32_t places) override {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    if (me.rank() == 0) {
      return batch_ns(plan, [&] {
        for (std::uint32_t i = 0; i < places; ++i) pairs_[i].signal();
        for (std::uint32_t i = 0; i < places; ++i) pairs_[i].await();
      });
    }
    for (std::uint64_t turn = 0; turn < plan.total(); ++turn) {
      for (std::uint32_t i = 0; i < places; ++i) {
        pairs_[i].await();
        pairs_[i].signal();
      }
    }
    return std::nullopt;
  }

  Time asleep(Member& me, const Batches& plan) override {
    return halved(exchange(me, plan, sleeper_, 0));
  }

 private:
  static Time halved(Time time) {
    if (time) *time /= 2;
    return time;
  }

  static Time exchange(Member& me, const Batches& plan, std::vector<BarePair>& over,
                       std::size_t bytes) {
    me.meet();
    if (me.rank() > 1) return std::nullopt;
    BarePair& pair = over.front();
    if (me.rank() == 0) {
      return batch_ns(plan, [&] {
        pair.signal(bytes);
        pair.await();
      });
    }
    for (std::uint64_t i = 0; i < plan.total(); ++i) {
      pair.await();
      pair.signal(bytes);
    }
    return std::nullopt;
  }

  std::optional<BareListener> listener_;  // as long as what it has accepted
  std::vector<BarePair> pairs_;           // empty for processes that only take part
  std::vector<BarePair> sleeper_;         // one
};

}  // namespace

std::unique_ptr<Bare> bare_verbs(Member& me, const std::string& address) {
  return std::make_unique<BareVerbs>(me, address);
}

}  // namespace dunlin::bench
