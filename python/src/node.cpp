#include <condition_variable>
#include <csignal>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dunlin/group.hpp>

#include "bytes.hpp"
#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {

// --- the state -----------------------------------------------------------------------------------

NodeState::~NodeState() {
  const nb::gil_scoped_release others_run;
  // The node ends before the lists of its calls do: a member of this object that is destroyed
  // later.
  node_.leave();
  node_.wait_for_end();
}

void NodeState::close() {
  node_.leave();
  wait_without_gil([&](std::uint64_t ns) { return node_.wait_for_end(ns); }, [] {});
}

const std::shared_ptr<Completions>& NodeState::completions() {
  nb::object loop = running_loop();
  if (!loops_.empty() && loops_.front()->loop().is(loop)) return loops_.front();
  std::erase_if(loops_, [](const std::shared_ptr<Completions>& one) {
    // A call that has not ended owns its list, and the node's thread must not be the last owner.
    return one.use_count() == 1 && nb::cast<bool>(one->loop().attr("is_closed")());
  });
  for (auto& one : loops_) {
    if (!one->loop().is(loop)) continue;
    std::swap(one, loops_.front());
    return loops_.front();
  }
  loops_.insert(loops_.begin(), Completions::make(std::move(loop)));
  return loops_.front();
}

// --- join ----------------------------------------------------------------------------------------

namespace {

/// What a join tells people. The node keeps the function that fills it as long as it runs.
struct News {
  std::mutex mutex;
  std::vector<std::string> lines;
};

/// A join in a thread of its own, so that a signal can end the wait for it.
struct Joining {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool given_up = false;
  std::optional<Node> node;
  std::exception_ptr thrown;
  const std::shared_ptr<News> news = std::make_shared<News>();
};

void log_news(News& news) {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(news.mutex);
    lines.swap(news.lines);
  }
  if (lines.empty()) return;
  const nb::object log = nb::module_::import_("logging").attr("getLogger")("dunlin");
  for (const std::string& line : lines) log.attr("info")("%s", line.c_str());
}

/// The joining thread's work.
void join_as(Joining& joining, const NodeOptions& options) {
  std::optional<Node> node;
  std::exception_ptr thrown;
  try {
    node.emplace(Node::join(options));
  } catch (...) {
    thrown = std::current_exception();
  }
  {
    const std::lock_guard lock(joining.mutex);
    if (!joining.given_up) joining.node.swap(node);
  }
  node.reset();  // without a waiter it leaves the group here
  const std::lock_guard lock(joining.mutex);
  joining.thrown = thrown;
  joining.ended = true;
  joining.changed.notify_all();
}

std::shared_ptr<Joining> begin_join_of(NodeOptions options) {
  auto joining = std::make_shared<Joining>();
  options.on_news = [its_news = std::weak_ptr(joining->news)](std::string_view line) {
    const std::shared_ptr<News> news = its_news.lock();
    if (!news) return;
    const std::lock_guard lock(news->mutex);
    news->lines.emplace_back(line);
  };
  options.gives_up = [its_joining = std::weak_ptr(joining)] {
    const std::shared_ptr<Joining> one = its_joining.lock();
    const std::lock_guard lock(one->mutex);  // the joining thread has it
    return one->given_up;
  };
  sigset_t all, before;  // signals are for Python's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([joining, options = std::move(options)] { join_as(*joining, options); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return joining;
}

/// Ends a join that a signal's handler has interrupted, and waits for the end, so that this process
/// is no member that nobody knows of. A second signal ends the wait; the join ends nevertheless.
void end_join(Joining& joining, const std::function<bool(std::uint64_t)>& ended) {
  std::optional<Node> node;
  {
    const nb::gil_scoped_release others_run;
    const std::lock_guard lock(joining.mutex);
    joining.given_up = true;
    joining.node.swap(node);
  }
  if (node) {
    const nb::gil_scoped_release others_run;
    node.reset();
  }
  wait_without_gil(ended, [] {});
}

/// Waits for the end of a join; logs what it tells people.
Node wait_for_join(Joining& joining) {
  const auto ended = [&](std::uint64_t ns) {
    std::unique_lock lock(joining.mutex);
    return joining.changed.wait_for(lock, std::chrono::nanoseconds(ns),
                                    [&] { return joining.ended; });
  };
  const auto has_news = [&] {
    const std::lock_guard lock(joining.news->mutex);
    return !joining.news->lines.empty();
  };
  try {
    for (bool has_ended = false; !has_ended; log_news(*joining.news))
      wait_without_gil([&](std::uint64_t ns) { return (has_ended = ended(ns)) || has_news(); },
                       [] {});
  } catch (nb::python_error& interrupted) {
    end_join(joining, ended);
    throw;
  }
  if (joining.thrown) std::rethrow_exception(joining.thrown);
  return std::move(*joining.node);
}

std::shared_ptr<NodeState> join(const std::string& group, std::uint32_t members,
                                std::vector<std::string> names, const std::string& name,
                                bool may_found, const std::string& network,
                                const std::string& rendezvous, const std::string& secret,
                                const std::string& secret_file, const std::string& device,
                                bool encrypt, const std::string& listen,
                                std::vector<std::string> contacts, std::uint32_t most_members,
                                double timeout, std::optional<double> silence_timeout,
                                const std::string& wait, std::uint32_t spin_us) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  NodeOptions options;
  options.group = group;
  options.members = members;
  options.names = std::move(names);
  options.name = name;
  options.may_found = may_found;
  options.network.network = network;
  options.network.rendezvous = rendezvous;
  options.network.secret = secret;
  options.network.secret_file = secret_file;
  options.network.device = device;
  options.network.encrypt = encrypt;
  options.network.timeout_ms = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(nanoseconds(timeout, UINT64_MAX) / kNsPerMs, UINT32_MAX));
  if (silence_timeout)
    options.network.silence_timeout_ms =
        static_cast<std::uint32_t>(nanoseconds(*silence_timeout, 0) / kNsPerMs);
  options.listen = listen;
  options.contacts = std::move(contacts);
  options.most_members = most_members;
  if (wait != "adaptive" && wait != "spin" && wait != "block")
    throw nb::value_error("wait is 'adaptive', 'spin' or 'block'");
  options.thread.wait = wait == "spin"    ? Wait::spin
                        : wait == "block" ? Wait::block
                                          : Wait::adaptive;
  options.thread.spin_us = spin_us;

  const std::shared_ptr<Joining> joining = begin_join_of(std::move(options));
  return std::make_shared<NodeState>(wait_for_join(*joining), group);
}

std::string repr_of(PyNode& self) {
  std::string text =
      "<dunlin.Node '" + self.state->node().name() + "' of group '" + self.state->group() + "': ";
  if (self.state->node().ended()) return text + "ended>";
  const View view = self.state->node().view();
  return text + std::to_string(view.members.size()) + " members in view " +
         std::to_string(view.number) + ">";
}

}  // namespace

void bind_node(nb::module_& module) {
  nb::class_<View>(module, "View", "The members of a group, as all of them have agreed.")
      .def_ro("number", &View::number, "Counts the views of the group, from 1.")
      .def_ro("members", &View::members, "The members' names.")
      .def("__repr__", [](const View& view) {
        std::string text = "<dunlin.View " + std::to_string(view.number) + ":";
        for (const std::string& name : view.members) text += " " + name;
        return text + ">";
      });
  nb::class_<PyNode> node(
      module, "Node", nb::is_weak_referenceable(), nb::dynamic_attr(),
      "This process's membership in a group. Any thread may use it and its handles. "
      "As a context manager, it leaves the group at the end of the block.");
  BoundHandle<Store>::refuse_pickling(node);
  node.def_prop_ro(
          "name", [](PyNode& self) { return self.state->node().name(); },
          "This member's name, which is unique in the group.")
      .def_prop_ro(
          "group", [](PyNode& self) { return self.state->group(); }, "The group's name.")
      .def_prop_ro(
          "rank", [](PyNode& self) { return self.state->node().rank(); },
          "This member's number in the group; members that have died keep theirs.")
      .def_prop_ro(
          "view",
          [](PyNode& self) {
            const nb::gil_scoped_release others_run;
            return self.state->node().view();
          },
          "The members at hand. After the end: the last ones.")
      .def_prop_ro(
          "ended", [](PyNode& self) { return self.state->node().ended(); },
          "Whether this process is no member any more.")
      .def_prop_ro(
          "why_ended", [](PyNode& self) { return self.state->node().why_ended(); },
          "A sentence that says why this process is no member any more; empty while it is one.")
      .def(
          "close", [](PyNode& self) { self.state->close(); },
          "Leaves the group once the others have what was sent here, and waits for the end. Calls "
          "that "
          "are under way end with EndedError.")
      .def(
          "leave", [](PyNode& self) { self.state->node().leave(); },
          "Asks to leave the group, and returns at once. A signal's handler may call it.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](PyNode& self, nb::args) { self.state->close(); })
      .def("__repr__", &repr_of);
  node.def("_store", [](PyNode& self, const std::string& name, std::uint32_t copies,
                        std::size_t memory_bytes, std::uint64_t expected_keys, std::uint32_t homes,
                        std::size_t cache_bytes, bool evicts) {
    StoreOptions options;
    options.copies = copies;
    options.memory_bytes = memory_bytes;
    options.expected_keys = expected_keys;
    options.homes = homes;
    options.cache_bytes = cache_bytes;
    if (evicts) options.eviction = Eviction::lru;
    const nb::gil_scoped_release others_run;
    return Store{self.state, self.state->node().store(name, options), name};
  });
  node.def("_segments", [](PyNode& self, const std::string& name, std::size_t pool_bytes) {
    return begin_without_gil([&] {
      return Segments{self.state, self.state->node().segments(name, {.pool_bytes = pool_bytes}),
                      name};
    });
  });
  module.def(
      "join",
      [](const std::string& group, std::uint32_t members, std::vector<std::string> names,
         const std::string& name, bool may_found, const std::string& network,
         const std::string& rendezvous, const std::string& secret, const std::string& secret_file,
         const std::string& device, bool encrypt, const std::string& listen,
         std::vector<std::string> contacts, std::uint32_t most_members, double timeout,
         std::optional<double> silence_timeout, const std::string& wait, std::uint32_t spin_us) {
        return PyNode{join(group, members, std::move(names), name, may_found, network, rendezvous,
                           secret, secret_file, device, encrypt, listen, std::move(contacts),
                           most_members, timeout, silence_timeout, wait, spin_us)};
      });
}

}  // namespace dunlin::python
