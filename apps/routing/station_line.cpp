#include "routing/station_line.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::routing {

namespace {

constexpr char kNetwork = 'n';
constexpr char kEvent = 'e';
constexpr char kTables = 't';

/// Both sides are the same program, so values travel as they are.
class Out {
 public:
  template <class Value>
  void operator()(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class Value>
  void operator()(const std::vector<Value>& values) {
    (*this)(values.size());
    for (const Value& value : values) (*this)(value);
  }

  std::string bytes = {};
};

class In {
 public:
  explicit In(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class Value>
  void operator()(Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  template <class Value>
  void operator()(std::vector<Value>& values) {
    std::size_t count = 0;
    (*this)(count);
    values.resize(count);
    for (Value& value : values) (*this)(value);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Visits all fields but the event, which both sides know from the plan.
template <class Record, class Visitor>
void visit_figures(Record& record, Visitor& visitor) {
  visitor(record.at_ns);
  visitor(record.reactions);
  visitor(record.recomputed);
  visitor(record.skipped);
  visitor(record.first_ns);
  visitor(record.last_ns);
  visitor(record.last_compute_ns);
  visitor(record.median_compute_ns);
  visitor(record.all_settled_ns);
}

struct Head {
  char kind;
  std::size_t body_bytes;
};

}  // namespace

StationLine::StationLine(const Plan& plan) : plan_(plan) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  parent_end_ = ends[0];
  station_end_ = ends[1];
}

StationLine::~StationLine() {
  close(parent_end_);
  close(station_end_);
}

void StationLine::tell_network(const std::string& network) {
  Out out;
  out(std::vector<char>(network.begin(), network.end()));
  send(kNetwork, out.bytes);
}

void StationLine::tell_event(const EventRecord& record) {
  Out out;
  visit_figures(record, out);
  send(kEvent, out.bytes);
}

void StationLine::tell_tables(const std::vector<Installed>& tables) {
  Out out;
  out(tables.size());
  for (const Installed& table : tables) {
    out(table.length);
    out(table.next_hop);
  }
  send(kTables, out.bytes);
}

void StationLine::send(char kind, const std::string& body) const {
  Head head{};
  head.kind = kind;
  head.body_bytes = body.size();
  Out out;
  out(head);
  out.bytes += body;
  for (std::size_t sent = 0; sent < out.bytes.size();) {
    const ssize_t some =
        ::send(station_end_, out.bytes.data() + sent, out.bytes.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno != EINTR) {
      throw Error(fmt::format("telling the results: {}", std::strerror(errno)));
    }
    if (some > 0) sent += static_cast<std::size_t>(some);
  }
}

std::string StationLine::asked_to_stop() const {
  std::array<char, 512> text{};  // holds a sentence
  const ssize_t bytes = recv(station_end_, text.data(), text.size(), MSG_DONTWAIT);
  return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : std::string();
}

/// Whether it hears that or has just ended: we wait for its end.
void StationLine::ask_to_stop(const std::string& why) const {
  static_cast<void>(::send(parent_end_, why.data(), why.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

bool StationLine::take_news(const Listener& listener, const NetworkListener& network) {
  std::array<char, 65536> part;
  ssize_t got = 0;
  while ((got = recv(parent_end_, part.data(), part.size(), MSG_DONTWAIT)) > 0) {
    unread_.append(part.data(), static_cast<std::size_t>(got));
  }
  Head head{};
  while (unread_.size() >= sizeof head) {
    std::memcpy(&head, unread_.data(), sizeof head);
    const std::size_t bytes = sizeof head + head.body_bytes;
    if (unread_.size() < bytes) break;
    std::string body = unread_.substr(sizeof head, head.body_bytes);
    unread_.erase(0, bytes);
    take(head.kind, std::move(body), listener, network);
  }
  return finished_;
}

void StationLine::take(char kind, std::string body, const Listener& listener,
                       const NetworkListener& network) {
  In in(std::move(body));
  if (kind == kNetwork) {
    std::vector<char> text;
    in(text);
    joined_ = true;
    if (network) network({text.begin(), text.end()});
  } else if (kind == kEvent) {
    EventRecord record;
    visit_figures(record, in);
    const LinkEvent* const event = plan_.event(Plan::kStart + events_++);
    if (event != nullptr) record.event = *event;
    listener(record);
  } else {
    std::size_t count = 0;
    in(count);
    tables_.resize(count);
    for (Installed& table : tables_) {
      in(table.length);
      in(table.next_hop);
    }
    finished_ = true;
  }
}

}  // namespace dunlin::routing
