#include "fabric/launch/pmix.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <dlfcn.h>
#include <pmix.h>

#include <dunlin/error.hpp>

#include "fabric/backoff.hpp"
#include "fabric/forking.hpp"
#include "fabric/stepped_join.hpp"

namespace dunlin::launch {
namespace {

constexpr const char* kFile = "libpmix.so.2";
constexpr std::uint64_t kNsPerMs = 1'000'000;

/// The functions of the library, which is loaded, and not linked: few programs are started by a
/// launcher that has PMIx.
struct Library {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;
};

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Error(std::string(kFile) + " has no " + name);
}

/// Loads the library, which is never unloaded, since it has started threads.
Library load() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(dlerror());
  Library loaded;
  look_up(library, "PMIx_Init", loaded.init);
  look_up(library, "PMIx_Finalize", loaded.finalize);
  look_up(library, "PMIx_Put", loaded.put);
  look_up(library, "PMIx_Commit", loaded.commit);
  look_up(library, "PMIx_Get", loaded.get);
  look_up(library, "PMIx_Error_string", loaded.error_string);
  return loaded;
}

/// Connections are made one at a time. A child has none of the threads that serve one.
struct Turns final : ForkAware {
  void in_child() noexcept override {
    if (mutex.try_lock())
      mutex.unlock();
    else
      is_lost = true;
  }
  std::mutex mutex;
  bool is_lost = false;
};

std::unique_lock<std::mutex> own_turn() {
  static Turns& turns = *new Turns;  // never destroyed: a process may fork while it ends
  if (turns.is_lost)
    throw Error(
        "this process was forked while another thread asked the PMIx server, and cannot ask it "
        "itself: fork before any thread joins, or start the child anew (exec)");
  return std::unique_lock(turns.mutex);
}

}  // namespace

/// There is one server, and PMIx counts who uses the connection to it.
struct Pmix::Connection {
  Library library = load();
  pmix_proc_t self{};
  std::map<std::string, std::string> made;  // by key: what this process has made as rank 0

  void check(pmix_status_t status, const char* what) const {
    if (status != PMIX_SUCCESS)
      throw Error(std::string(what) + ": " + library.error_string(status));
  }
  void begin() { check(library.init(&self, nullptr, 0), "connecting to the PMIx server failed"); }
  void end() { library.finalize(nullptr, 0); }

  /// The value, for which this waits so long. A server does not wait for a process that has not
  /// connected to it yet.
  [[nodiscard]] pmix_value_t* get(pmix_rank_t rank, const char* key, std::uint32_t timeout_ms) {
    const std::uint64_t deadline_ns = read_clock_ns(CLOCK_MONOTONIC) + timeout_ms * kNsPerMs;
    pmix_proc_t of = self;
    of.rank = rank;
    pmix_info_t limit{};
    std::copy_n(PMIX_TIMEOUT, sizeof PMIX_TIMEOUT, limit.key);
    limit.value.type = PMIX_INT;
    limit.value.data.integer = static_cast<int>(std::max<std::uint32_t>(timeout_ms / 1'000, 1));
    Backoff pauses(1 * kNsPerMs, 50 * kNsPerMs);
    while (true) {
      pmix_value_t* value = nullptr;
      const pmix_status_t status = library.get(&of, key, &limit, 1, &value);
      const std::uint64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
      if (status != PMIX_ERR_NOT_FOUND || now_ns >= deadline_ns) {
        check(status, "asking the PMIx server failed");
        return value;
      }
      Awaited{.until_ns = std::min(deadline_ns, pauses.after(now_ns))}.wait();
    }
  }
  [[nodiscard]] std::uint32_t number(const char* key) {
    constexpr std::uint32_t kTimeoutMs = 10'000;
    pmix_value_t* const value = get(PMIX_RANK_WILDCARD, key, kTimeoutMs);
    const bool right = value->type == PMIX_UINT32;
    const std::uint32_t number = right ? value->data.uint32 : 0;
    std::free(value);
    if (!right) throw Error(std::string("the PMIx server does not know ") + key);
    return number;
  }
  void put(const std::string& key, std::string& text) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    check(library.put(PMIX_GLOBAL, key.c_str(), &value), "telling the PMIx server failed");
    check(library.commit(), "telling the PMIx server failed");
  }

  static Connection& shared() {
    static Connection only;
    return only;
  }
};

Pmix::Pmix() : lock_(own_turn()), connection_(Connection::shared()) { connection_.begin(); }

Pmix::~Pmix() { connection_.end(); }

std::uint32_t Pmix::job_size() const { return connection_.number(PMIX_JOB_SIZE); }

std::uint32_t Pmix::local_size() const { return connection_.number(PMIX_LOCAL_SIZE); }

std::string Pmix::of_rank_0(const std::string& key, const std::function<std::string()>& make,
                            std::uint32_t timeout_ms) const {
  if (connection_.self.rank != 0) {
    pmix_value_t* const value = connection_.get(0, key.c_str(), timeout_ms);
    const bool right = value->type == PMIX_STRING && value->data.string != nullptr;
    const std::string text = right ? value->data.string : "";
    if (right) std::free(value->data.string);
    std::free(value);
    if (right) return text;
    throw Error("the PMIx server has no text for " + key);
  }
  const auto [known, is_new] = connection_.made.try_emplace(key);
  if (is_new) {
    known->second = make();
    connection_.put(key, known->second);
  }
  return known->second;
}

}  // namespace dunlin::launch
