#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/join.hpp>
#include <dunlin/node/engine.hpp>
#include <dunlin/node/future.hpp>
#include <dunlin/node/map.hpp>
#include <dunlin/node/multicast.hpp>
#include <dunlin/node/queue.hpp>
#include <dunlin/node/replicated.hpp>
#include <dunlin/node/segments.hpp>
#include <dunlin/node/store.hpp>
#include <dunlin/node/table.hpp>
#include <dunlin/node/topic.hpp>

/// A Node is this process's membership in a group, with a thread that polls: the front door of the
/// library. Any thread may use it and its handles.
///
///     dunlin::Node node = dunlin::Node::join({.group = "rack7", .members = 3});
///     dunlin::StoreHandle store = node.store("blocks");
///     store.put("load/rack7", "0.75").get();                  // waits; throws Error if it failed
///     store.get("load/rack7").then([](auto got) { ... });     // on the node's executor
///
/// docs/node.md has the promises (NODE-1 to NODE-7, in node/engine.hpp), and the same program with
/// the objects that a program polls by itself.
namespace dunlin {

struct View;

struct NodeOptions {
  std::string group = {};
  /// The number of members that found the group, if no group of this name runs yet: they wait for
  /// each other. All give the same number.
  std::uint32_t members = 1;
  /// In place of `members`: their names. `name` is one of these, or the name of a later member.
  std::vector<std::string> names = {};
  /// This member's name, which is unique in the group. Needs `names`. Empty: a founder has its
  /// rank, and a later member a name that is made of its host and process.
  std::string name = {};
  /// False: this process only joins a group that runs.
  bool may_found = true;
  /// The network, and what it needs: secret, rendezvous of the founders, device. `group`,
  /// `members`, `names` and `name` here are not used.
  JoinOptions network = {};
  /// Between hosts: the address of this process alone, at which later members find it, and such
  /// addresses of other members.
  std::string listen = {};
  std::vector<std::string> contacts = {};
  /// The number of members that can ever come, founders and those that have gone included. All give
  /// the same number.
  std::uint32_t most_members = 64;
  /// How the node's thread waits, and where it runs.
  ThreadOptions thread = {};
  /// The bytes of the queue in which calls of other threads wait for the node's thread; a power of
  /// two.
  std::size_t queue_bytes = 1 << 20;
  /// Runs callbacks and coroutines, in order; null: the node's thread does.
  node::Executor executor = nullptr;
  /// Gets what a callback of the program's has thrown. Null: its sentence goes to standard error.
  std::function<void(std::exception_ptr)> on_exception = nullptr;
  /// Gets sentences for people: whom a join waits for. Null: they go to standard error.
  std::function<void(std::string_view)> on_news = nullptr;
  /// Asked again and again while join() waits: true gives the join up, and join() throws Error.
  /// Null: nothing but the time ends it.
  std::function<bool()> gives_up = nullptr;
  /// How long the end of the node waits at most until the other members have what was sent here.
  std::uint32_t hand_over_ms = 1'000;
};

class Node {
 public:
  /// Joins the group of that name if it runs; else founds it with the others. Returns once this
  /// process is in a view. Throws Error that says who is missing, after `network.timeout_ms` (10 s
  /// unless it is given), or what is wrong.
  [[nodiscard]] static Node join(const NodeOptions& options);
  /// leave(), and waits for its end. Calls that are under way end with `stopped`.
  ~Node();
  Node(Node&&) noexcept = default;
  Node& operator=(Node&& other) noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Rank rank() const noexcept { return rank_; }
  /// The view at hand. After the end: the last one.
  [[nodiscard]] View view() const;
  /// Calls `handler` with the view at hand and each later one, on the executor. Replaces an earlier
  /// handler.
  void on_view(std::function<void(const View&)> handler);

  // --- handles; the objects behind them live until the node ends. A second call with the name
  // gives
  // --- the same object, and ignores the options.
  template <class Row>
  [[nodiscard]] TableHandle<Row> table(const std::string& name) {
    return TableHandle<Row>(engine_, name);
  }
  [[nodiscard]] MulticastHandle multicast(const std::string& name, MulticastSetup setup = {}) {
    return MulticastHandle(engine_, name, std::move(setup));
  }
  template <class T>
  [[nodiscard]] TopicHandle<T> topic(const std::string& name, TopicSetup<T> setup = {}) {
    return TopicHandle<T>(engine_, name, std::move(setup));
  }
  [[nodiscard]] StoreHandle store(const std::string& name = "store", StoreOptions options = {}) {
    return StoreHandle(engine_, name, std::move(options));
  }
  [[nodiscard]] SegmentsHandle segments(const std::string& name = "space",
                                        SpaceOptions options = {}) {
    return SegmentsHandle(engine_, name, std::move(options));
  }
  template <class K, class V>
  [[nodiscard]] MapHandle<K, V> map(const std::string& name, MapOptions options = {}) {
    return MapHandle<K, V>(engine_, name, std::move(options));
  }
  template <class T>
  [[nodiscard]] QueueHandle<T> queue(const std::string& name, QueueOptions options = {}) {
    return QueueHandle<T>(engine_, name, std::move(options));
  }
  /// An object of a class of the program's at each member, to which commands are applied in one
  /// order (node/replicated.hpp).
  template <class T, class... Commands>
  [[nodiscard]] Replicated<T, Commands...> replicated(const std::string& name) {
    return Replicated<T, Commands...>(engine_, name);
  }

  /// For handles of the program's own, and of bindings: their objects are a node::NodeObject.
  [[nodiscard]] const std::shared_ptr<node::Engine>& engine() const noexcept { return engine_; }

  /// Calls a function with the node's Group and Progress while no other thread uses them, for what
  /// the handles do not have. The function neither waits nor polls.
  template <class Work>
  decltype(auto) with_core(Work&& work) {
    return engine_->with_lock(
        [&]() -> decltype(auto) { return work(engine_->group(), engine_->progress()); });
  }

  // --- the end -----------------------------------------------------------------------------------
  /// Asks to leave the group, once the others have what was sent here; returns at once. May be
  /// called in a signal handler.
  void leave() noexcept;
  /// Waits until this process is no member any more, for the time at most; returns whether it is.
  bool wait_for_end(std::uint64_t timeout_ns = remote::kForever);
  [[nodiscard]] bool ended() const noexcept;
  /// A sentence that says why this process is no member any more; empty while it is one.
  [[nodiscard]] std::string why_ended() const;

 private:
  explicit Node(std::shared_ptr<node::Engine> engine);
  std::shared_ptr<node::Engine> engine_;
  std::string name_;
  Rank rank_ = 0;
};

}  // namespace dunlin
