#include "bench/harness/neighbour.hpp"

#include <cerrno>
#include <csignal>
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

const char* program_of(Neighbour::Kind kind) {
  return kind == Neighbour::Kind::redis ? "redis-server" : "memcached";
}

std::vector<std::string> command_of(Neighbour::Kind kind, const std::string& directory,
                                    const std::string& socket) {
  if (kind == Neighbour::Kind::redis)
    return {program_of(kind), "--port",      "0", "--unixsocket", socket, "--save", "", "--dir",
            directory,        "--daemonize", "no"};
  // One thread, as Redis has, and a gigabyte, so that it evicts nothing.
  return {program_of(kind), "-s", socket, "-m", "1024", "-t", "1", "-u", "root"};
}

/// Becomes the server; returns only if that fails.
int become_server(const std::vector<std::string>& command) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, 0);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  return 127;
}

std::string word(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

}  // namespace

std::string_view Neighbour::name(Kind kind) { return kind == Kind::redis ? "Redis" : "memcached"; }

std::string Neighbour::missing(Kind kind) {
  const std::string program = program_of(kind);
  if (process::program_exists(program)) return {};
  return std::string(name(kind)) + " was not measured: there is no " + program +
         " (Debian: " + program + ")";
}

Neighbour::Neighbour(Kind kind) : kind_(kind) {
  const std::filesystem::path socket = directory_ / "socket";
  const std::vector<std::string> command = command_of(kind, directory_.path(), socket.string());
  server_ = process::Child([&] { return become_server(command); });
  connect_to(socket);
}

Neighbour::~Neighbour() { server_.kill(); }

void Neighbour::connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.string().size() >= sizeof address.sun_path)
    throw Error("bench: the path of a socket is too long: " + socket.string());
  std::strcpy(address.sun_path, socket.c_str());
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (server_.ended()) throw Error("bench: " + std::string(name(kind_)) + " has ended at once");
    socket_ = Descriptor(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    const timeval patience{kStartPatience.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return;
    constexpr timespec kNap{0, 1'000'000};
    ::nanosleep(&kNap, nullptr);
  }
  throw Error("bench: " + std::string(name(kind_)) + " does not listen on " + socket.string());
}

void Neighbour::exchange(const std::string& requests, const std::string& answers) {
  process::write_all(socket_, requests);
  answer_.resize(answers.size());
  for (std::size_t have = 0; have < answers.size();) {
    const ssize_t got = ::recv(socket_.get(), answer_.data() + have, answers.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  if (answer_ != answers)
    throw Error("bench: " + std::string(name(kind_)) + " answers '" + answer_.substr(0, 100) +
                "' instead of '" + answers.substr(0, 100) + "'");
}

Dialogue Neighbour::get(std::string_view key, std::string_view value) const {
  if (kind_ == Kind::redis) return {"*2\r\n" + word("GET") + word(key), word(value)};
  const std::string named(key), bytes = std::to_string(value.size());
  return {"get " + named + "\r\n",
          "VALUE " + named + " 0 " + bytes + "\r\n" + std::string(value) + "\r\nEND\r\n"};
}

Dialogue Neighbour::set(std::string_view key, std::string_view value) const {
  if (kind_ == Kind::redis) return {"*3\r\n" + word("SET") + word(key) + word(value), "+OK\r\n"};
  return {"set " + std::string(key) + " 0 0 " + std::to_string(value.size()) + "\r\n" +
              std::string(value) + "\r\n",
          "STORED\r\n"};
}

Neighbour::Times Neighbour::measure(const Batches& plan, std::size_t bytes) {
  const std::string value(bytes, 'x');
  const Dialogue setting = set("key", value), getting = get("key", value);
  Times times;
  times.set_ns = batch_ns(plan, [&] { exchange(setting.request, setting.answer); });
  times.get_ns = batch_ns(plan, [&] { exchange(getting.request, getting.answer); });
  return times;
}

}  // namespace dunlin::bench
