#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/pending_join.hpp>

/// The conformance suite: what every backend of Fabric must do. A test talks to a Group of nodes
/// and never to a backend; a backend adds one file that makes Groups (docs/testing.md).
///
///     TEST_P(Order, AHandlerSeesEarlierWrites) {
///       start(2);
///       Shared box = share("box", 4096);
///       ...
///       until("the message is heard", [&] { return heard == 1; });
///     }
namespace dunlin::conformance {

struct SeenEvent {
  Event::Kind kind;
  Rank peer;
  RegionId region;
  std::string text;
};

/// A node's part of a test: called again and again, between two polls of that node, on that node's
/// own thread where nodes have threads; returns whether it is done.
using Program = std::function<bool()>;

/// Some nodes of one backend, joined into one group. Owns what belongs to the nodes, because a
/// killed node must neither release its regions nor keep them.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  [[nodiscard]] virtual std::uint32_t size() const = 0;
  [[nodiscard]] virtual Fabric& node(Rank rank) = 0;
  [[nodiscard]] virtual bool alive(Rank rank) const = 0;
  /// A little progress on every living node.
  virtual void poll_all() = 0;
  /// Polls all nodes until the condition holds; false if it did not within a very long time.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  /// Runs one program a node, side by side, until all are done; false as run_until.
  virtual bool run(const std::vector<Program>& programs) = 0;
  /// The node stops without a word, as a killed process does.
  virtual void kill(Rank rank) = 0;

  /// A region that lives as long as its node (or until dropped).
  Region& allocate(Rank rank, const RegionSpec& spec);
  void release(Rank rank, RegionId id);
  [[nodiscard]] const std::vector<SeenEvent>& events(Rank rank) const;

 protected:
  /// Backends call it once node() works: starts to record what the nodes see.
  void record_events();
  /// Forgets a killed node's regions without releasing them: the dead run no destructors.
  void bury(Rank rank);
  /// Releases everything; before the fabrics go.
  void release_all() { belongings_.clear(); }

 private:
  struct Belongings {
    std::deque<Region> regions;
    Subscription subscription;
    std::vector<SeenEvent> events;
  };
  std::vector<std::unique_ptr<Belongings>> belongings_;
};

struct Backend {
  std::string variant;  // the last part of its tests' names
  std::function<std::unique_ptr<Group>(std::uint32_t nodes)> start = nullptr;
  /// Attaches this process to a group; null where nodes are not processes.
  std::function<std::unique_ptr<Fabric>(const std::string& group, Rank rank, std::uint32_t nodes)>
      join = nullptr;
  /// The same step by step; for those who are held to the suite Forming, too.
  std::function<std::unique_ptr<PendingJoin>(const std::string& group, Rank rank,
                                             std::uint32_t nodes)>
      begin = nullptr;
};
void PrintTo(const Backend& backend, std::ostream* out);

/// One region of the same name on every node, all connected to each other.
class Shared {
 public:
  explicit Shared(std::vector<Region*> regions) : regions_(std::move(regions)) {}
  [[nodiscard]] RegionId id(Rank rank) const { return regions_[rank]->id(); }
  [[nodiscard]] std::byte* memory(Rank rank) const { return regions_[rank]->memory().data(); }
  [[nodiscard]] std::uint64_t& word(Rank rank, std::size_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(memory(rank) + offset);
  }
  [[nodiscard]] std::uint64_t load(Rank rank, std::size_t offset) const {
    return memory::load(word(rank, offset));
  }

 private:
  std::vector<Region*> regions_;
};

/// A batch that a queue may take in parts.
class Parcel {
 public:
  [[nodiscard]] bool posted() const { return taken_ == operations_.size(); }
  void fill(std::vector<Operation> operations) {
    operations_ = std::move(operations);
    taken_ = 0;
  }
  /// Posts what is left, as far as there is room; returns whether all is posted.
  bool post(Fabric& fabric) {
    if (!posted()) taken_ += fabric.post(std::span(operations_).subspan(taken_)).accepted;
    return posted();
  }

 private:
  std::vector<Operation> operations_;
  std::size_t taken_ = 0;
};

class Conformance : public testing::TestWithParam<Backend> {
 protected:
  void start(std::uint32_t nodes) { group_ = GetParam().start(nodes); }
  Group& group() { return *group_; }
  Fabric& node(Rank rank) { return group_->node(rank); }

  /// Polls until the condition holds; ends the test with "waited in vain until <what>" otherwise.
  void until(std::string_view what, const std::function<bool()>& condition);
  void until_finished(const Completion& completion, std::string_view what = "it is finished");
  /// As many programs as nodes, in order of rank; the empty one only polls.
  void run(std::string_view what, std::vector<Program> programs);
  /// Gives every node time to do what it should not.
  void let_time_pass();

  Shared share(const std::string& name, std::size_t bytes);
  [[nodiscard]] bool all_connected(const Shared& shared);
  /// How many events of that kind the node saw about that peer.
  std::size_t seen(Rank at, Event::Kind kind, Rank about);
  std::size_t seen(Rank at, Event::Kind kind, Rank about, RegionId region);
  /// The text of the last of them; empty if there was none.
  std::string text_of(Rank at, Event::Kind kind, Rank about);

  void post(Rank from, const Operation& operation);
  void post_and_finish(Rank from, const Operation& operation, Notify how = Notify::remotely);
  /// Sends, polling for as long as the way is full.
  void send(Rank from, Rank to, std::uint32_t channel, std::span<const std::byte> message);

 private:
  std::unique_ptr<Group> group_;
};

// What must hold, one suite a concern.
class Order : public Conformance {};
class Tearing : public Conformance {};
class Atomics : public Conformance {};
class Batches : public Conformance {};
class Completions : public Conformance {};
class Limits : public Conformance {};
class Refusals : public Conformance {};
class Regions : public Conformance {};
class Death : public Conformance {};
class Expulsion : public Conformance {};
class Forming : public Conformance {};
class Handlers : public Conformance {};
class Waiting : public Conformance {};
class Misuse : public Conformance {};
class Processes : public Conformance {};

inline std::string variant_name(const testing::TestParamInfo<Backend>& info) {
  return info.param.variant;
}

}  // namespace dunlin::conformance

#define DUNLIN_CONFORMANCE_SUITE(Name, Suite, backends)                  \
  INSTANTIATE_TEST_SUITE_P(Name, Suite, ::testing::ValuesIn(backends()), \
                           ::dunlin::conformance::variant_name)

/// Holds a backend to the whole suite: `backends` is a function that returns its variants.
/// Use it inside namespace dunlin::conformance.
#define DUNLIN_CONFORMANCE(Name, backends)               \
  DUNLIN_CONFORMANCE_SUITE(Name, Order, backends);       \
  DUNLIN_CONFORMANCE_SUITE(Name, Tearing, backends);     \
  DUNLIN_CONFORMANCE_SUITE(Name, Atomics, backends);     \
  DUNLIN_CONFORMANCE_SUITE(Name, Batches, backends);     \
  DUNLIN_CONFORMANCE_SUITE(Name, Completions, backends); \
  DUNLIN_CONFORMANCE_SUITE(Name, Limits, backends);      \
  DUNLIN_CONFORMANCE_SUITE(Name, Refusals, backends);    \
  DUNLIN_CONFORMANCE_SUITE(Name, Regions, backends);     \
  DUNLIN_CONFORMANCE_SUITE(Name, Death, backends);       \
  DUNLIN_CONFORMANCE_SUITE(Name, Expulsion, backends);   \
  DUNLIN_CONFORMANCE_SUITE(Name, Handlers, backends);    \
  DUNLIN_CONFORMANCE_SUITE(Name, Waiting, backends);     \
  DUNLIN_CONFORMANCE_SUITE(Name, Misuse, backends);      \
  DUNLIN_CONFORMANCE_SUITE(Name, Processes, backends)
