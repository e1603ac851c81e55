// Active caching: HTTP caches in front of an origin server. A cache answers a request with its copy
// of the page if the origin's version is still that of the copy, which it reads in the origin's
// memory: the origin's processors take no part. So no client receives a page that is older than the
// origin's version at the time of its request. Rank 0 is the origin; `threads` compute beside it:
//
//     ./caching rack7 3 0 16 & ./caching rack7 3 1 & ./caching rack7 3 2
//     curl -X POST -d 'some text' http://127.0.0.1:ORIGIN/page
//     curl http://127.0.0.1:CACHE/page         # /by-tcp asks the origin for its version instead
//
// A process prints its port, and ends at the end of its input.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <httplib.h>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

constexpr const char* kHost = "127.0.0.1";
constexpr const char* kVersion = "X-Version";
constexpr const char* kCheckUs = "X-Check-Us";

struct Origin {
  std::uint64_t version = 0;
  std::uint64_t port = 0;
};

/// The member, which one thread at a time uses: those of the HTTP server, and the one that polls.
struct Site {
  Site(const char* group, std::uint32_t members, std::uint32_t rank)
      : member(group, members, rank) {}

  /// Serves, and polls, until the input ends.
  void run() {
    const int port = server.bind_to_any_port(kHost);
    std::jthread serving([this] { server.listen_after_bind(); });
    ready(static_cast<std::uint64_t>(port));
    std::cout << "port " << port << std::endl;
    while (!input.over()) {
      if (input.front() != nullptr) input.pop();
      {
        const std::scoped_lock lock(mutex);
        member.space.poll();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server.stop();
  }

  std::function<void(std::uint64_t port)> ready;
  std::mutex mutex;
  Member member;
  httplib::Server server;
  TypedLines input;
};

void be_origin(Site& site, int threads) {
  std::string page = "nothing yet";
  Origin origin;
  const dunlin::Key key = site.member.allocate({.bytes = sizeof origin,
                                                .coherence = dunlin::Coherence::write,
                                                .placement = dunlin::Placement::here(),
                                                .name = "origin"});
  // The page is there before its version: a cache that sees the version gets that page, or one that
  // is newer.
  site.server.Post("/page", [&](const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(site.mutex);
    page = request.body;
    ++origin.version;
    demand(site.member.space.put(key, dunlin::bytes_of(origin)));
    response.set_header(kVersion, std::to_string(origin.version));
  });
  site.server.Get("/page", [&](const httplib::Request&, httplib::Response& response) {
    const std::scoped_lock lock(site.mutex);
    response.set_header(kVersion, std::to_string(origin.version));
    response.set_content(page, "text/plain");
  });
  site.server.Get("/version", [&](const httplib::Request&, httplib::Response& response) {
    const std::scoped_lock lock(site.mutex);
    response.set_content(std::to_string(origin.version), "text/plain");
  });
  site.ready = [&](std::uint64_t port) {
    const std::scoped_lock lock(site.mutex);
    origin.port = port;
    demand(site.member.space.put(key, dunlin::bytes_of(origin)));
  };
  std::vector<std::jthread> computing;
  for (int i = 0; i < threads; ++i)
    computing.emplace_back([](const std::stop_token& stop) {
      for (std::uint64_t n = 0; !stop.stop_requested(); ++n) asm volatile("" : : "r"(n) : "memory");
    });
  site.run();
}

void be_cache(Site& site) {
  const dunlin::Key key = site.member.find("origin");
  const auto look = [&] {
    const std::scoped_lock lock(site.mutex);
    Origin origin;
    demand(site.member.space.get(key, dunlin::bytes_of(origin)));
    return origin;
  };
  Origin origin = look();
  while (origin.port == 0) origin = look();
  const auto ask = [port = static_cast<int>(origin.port)](const char* path) {
    httplib::Client client(kHost, port);
    auto answer = client.Get(path);
    if (!answer) throw dunlin::Error("the origin does not answer");
    return *answer;
  };
  std::mutex copy_mutex;
  std::string copy;
  std::uint64_t copy_version = UINT64_MAX;
  const auto answer = [&](httplib::Response& response, auto&& version_now) {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t version = version_now();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    const std::scoped_lock lock(copy_mutex);
    if (copy_version == UINT64_MAX || copy_version < version) {
      const httplib::Response fresh = ask("/page");
      copy = fresh.body;
      copy_version = std::stoull(fresh.get_header_value(kVersion));
    }
    response.set_header(kVersion, std::to_string(copy_version));
    response.set_header(kCheckUs, std::to_string(took.count()));
    response.set_content(copy, "text/plain");
  };
  site.server.Get("/page", [&](const httplib::Request&, httplib::Response& response) {
    answer(response, [&] { return look().version; });
  });
  site.server.Get("/by-tcp", [&](const httplib::Request&, httplib::Response& response) {
    answer(response, [&] { return std::stoull(ask("/version").body); });
  });
  site.ready = [](std::uint64_t) {};
  site.run();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw dunlin::Error("usage: caching GROUP MEMBERS RANK [THREADS]");
  Site site(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])),
            static_cast<std::uint32_t>(std::atoi(argv[3])));
  if (std::atoi(argv[3]) == 0) {
    be_origin(site, argc > 4 ? std::atoi(argv[4]) : 0);
  } else {
    be_cache(site);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
