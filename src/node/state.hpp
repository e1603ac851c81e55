#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dunlin/container/containers.hpp>
#include <dunlin/group_members.hpp>
#include <dunlin/node.hpp>
#include <dunlin/pubsub/core.hpp>

#include "fabric/forking.hpp"
#include "fabric/processors.hpp"
#include "node/bell.hpp"
#include "node/founding.hpp"

namespace dunlin::node {

struct Engine::State final : ForkAware {
  State(const NodeOptions& options, Founded founded)
      : who("node of group '" + options.group + "': "),
        wait(options.thread.wait),
        spin_us(options.thread.spin_us),
        core(options.thread.core),
        hand_over_ms(options.hand_over_ms),
        executor(options.executor),
        on_exception(options.on_exception),
        on_news(options.on_news),
        own_fabric(std::move(founded.fabric)),
        group(std::move(founded.group)),
        members(std::in_place, *group, options.most_members),
        progress_holder(std::in_place, group->fabric(), *members),
        progress(*progress_holder),
        crowded(group->fabric().host_members() > usable_processors()) {}

  void in_child() noexcept override { forked.store(true, std::memory_order_relaxed); }
  [[nodiscard]] Fabric& fabric() const noexcept { return group->fabric(); }
  [[nodiscard]] bool has_callbacks() const noexcept {
    return some_callbacks.load(std::memory_order_relaxed);
  }
  /// Destroys all that needs the fabric.
  void end() noexcept {
    for (auto object = objects.rbegin(); object != objects.rend(); ++object) (*object)->end();
    objects.clear();
    objects_by_name.clear();
    on_view = nullptr;  // it may hold handles, and they the engine
    participant.reset();
    containers.reset();
    progress_holder.reset();
    members.reset();
    group.reset();
    own_fabric.reset();
  }

  // --- options -----------------------------------------------------------------------------------
  const std::string who;
  const Wait wait;
  const std::uint32_t spin_us;
  const int core;
  const std::uint32_t hand_over_ms;
  const Executor executor;
  const std::function<void(std::exception_ptr)> on_exception;
  const std::function<void(std::string_view)> on_news;

  // --- under the lock ---------------------------------------------------------------------------
  std::unique_ptr<Fabric> own_fabric;
  std::unique_ptr<Group> group;
  std::optional<GroupMembers> members;
  std::optional<remote::Progress> progress_holder;
  remote::Progress& progress;
  std::optional<Containers> containers;
  std::optional<pubsub::DomainParticipant> participant;
  std::map<std::string, std::shared_ptr<NodeObject>> objects_by_name;
  std::vector<std::shared_ptr<NodeObject>> objects;
  SharedCall* calls = nullptr;  // under way
  std::uint64_t view = 0;
  std::function<void(const View&)> on_view;

  // --- the polling thread ------------------------------------------------------------------------
  std::thread thread;
  std::atomic<std::thread::id> thread_id{};
  const bool crowded;  // this host has more members than processors
  std::uint64_t fruitless_since_ns = 0;

  // --- any thread --------------------------------------------------------------------------------
  Bell bell;
  std::atomic<bool> forked{false};
  std::atomic<bool> leaves{false};
  std::atomic<bool> some_callbacks{false};
  std::mutex mutex;  // for what follows
  View last_view;    // a copy of the group's
  std::deque<std::function<void()>> callbacks;
  bool no_more_callbacks = false;  // the thread that has work does it
  std::string why_ended;
  bool has_ended = false;
  std::condition_variable end_came;
  bool has_started = false;
  std::exception_ptr pin_failure;
  std::condition_variable started;
};

}  // namespace dunlin::node
