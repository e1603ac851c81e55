#include "bench/segment/redis.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/pipe.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr std::chrono::seconds kStartPatience{20};
constexpr const char* kServer = "redis-server";

std::filesystem::path own_directory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dunlin-redis-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Error("bench: no directory " + pattern + ": " + std::strerror(errno));
  return pattern;
}

/// Becomes the server; returns only if that fails.
int become_server(const std::string& directory, const std::string& socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, 0);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  const std::array<const char*, 12> command{kServer,           "--port",      "0",  "--unixsocket",
                                            socket.c_str(),    "--save",      "",   "--dir",
                                            directory.c_str(), "--daemonize", "no", nullptr};
  ::execvp(kServer, const_cast<char* const*>(command.data()));
  return 127;
}

std::string word(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

}  // namespace

std::string Redis::missing() {
  if (process::program_exists(kServer)) return {};
  return "Redis was not measured: there is no redis-server (Debian: redis-server)";
}

Redis::Redis() : directory_(own_directory()) {
  const std::filesystem::path socket = directory_ / "socket";
  server_ = process::Child([&] { return become_server(directory_, socket); });
  connect_to(socket);
}

Redis::~Redis() {
  server_.kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void Redis::connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.string().size() >= sizeof address.sun_path)
    throw Error("bench: the path of a socket is too long: " + socket.string());
  std::strcpy(address.sun_path, socket.c_str());
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (server_.ended()) throw Error("bench: redis-server has ended at once");
    socket_ = Descriptor(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    const timeval patience{kStartPatience.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return;
    constexpr timespec kNap{0, 1'000'000};
    ::nanosleep(&kNap, nullptr);
  }
  throw Error("bench: redis-server does not listen on " + socket.string());
}

void Redis::exchange(const std::string& request, std::size_t answer_bytes) {
  process::write_all(socket_, request);
  answer_.resize(answer_bytes);
  for (std::size_t have = 0; have < answer_bytes;) {
    const ssize_t got = ::recv(socket_.get(), answer_.data() + have, answer_bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error("bench: redis-server does not answer as it should: " + answer_);
    have += static_cast<std::size_t>(got);
  }
}

Redis::Times Redis::measure(const Batches& plan, std::size_t bytes) {
  const std::string value(bytes, 'x');
  const std::string set = "*3\r\n" + word("SET") + word("key") + word(value);
  const std::string get = "*2\r\n" + word("GET") + word("key");
  const std::string set_answer = "+OK\r\n";
  const std::string get_answer = word(value);
  const auto demand = [&](const std::string& request, const std::string& wanted) {
    exchange(request, wanted.size());
    if (answer_ != wanted) throw Error("bench: redis-server answers " + answer_);
  };
  Times times;
  times.set_ns = batch_ns(plan, [&] { demand(set, set_answer); });
  times.get_ns = batch_ns(plan, [&] { demand(get, get_answer); });
  return times;
}

}  // namespace dunlin::bench
