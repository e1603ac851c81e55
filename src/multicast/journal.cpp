#include "multicast/journal.hpp"

#include <array>
#include <cstring>

#include <dunlin/error.hpp>

#include "multicast/long_messages.hpp"

namespace dunlin::multicast {
namespace {

/// In front of a message's bytes.
struct MessageHead {
  std::uint64_t turn;
  std::uint64_t sender;
};

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class Number>
  Number number() {
    Number value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text(std::size_t bytes) {
    const std::span<const std::byte> text = take(bytes);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > rest_.size()) throw Error("it is too short");
    const std::span<const std::byte> taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  std::span<const std::byte> rest_;
};

template <class Number>
void put(std::vector<std::byte>& to, Number value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

struct ReadView {
  std::uint64_t number = 0;
  std::vector<std::string> members;
};

ReadView read_view(std::span<const std::byte> payload) {
  Bytes bytes(payload);
  ReadView view{.number = bytes.number<std::uint64_t>(), .members = {}};
  for (auto left = bytes.number<std::uint32_t>(); left > 0; --left)
    view.members.push_back(bytes.text(bytes.number<std::uint8_t>()));
  return view;
}

/// Calls for each record; what it throws gets the log's name and the record's number.
template <class Do>
void for_each(log::Log& log, Do action) {
  log::LogReader reader(log, log.first());
  while (const std::optional<log::Record> record = reader.next()) {
    try {
      action(*record);
    } catch (const Error& error) {
      throw Error("log '" + log.name() + "' in '" + log.path() + "': record " +
                  std::to_string(record->number) +
                  " is not what a multicast writes: " + error.what());
    }
  }
}

}  // namespace

Journal::Journal(std::shared_ptr<log::Disk> disk, const std::string& directory,
                 const std::string& name)
    : disk_(std::move(disk)), log_(disk_->open(directory), {.name = name}) {
  read_views();
  commit_ = std::make_unique<log::GroupCommit>(*disk_, log_);
}

void Journal::read_views() {
  for_each(log_, [&](const log::Record& record) {
    if (record.kind != static_cast<std::uint32_t>(Entry::view)) return;
    ReadView view = read_view(record.payload);
    state_.view = view.number;
    state_.members = std::move(view.members);
  });
  state_.next = log_.next();
  state_.chain = log_.chain();
}

std::uint64_t Journal::replay(const std::function<void(const Logged&)>& upcall) {
  ReadView view;
  std::vector<Assembly> assemblies;
  std::uint64_t messages = 0;
  for_each(log_, [&](const log::Record& record) {
    if (record.kind == static_cast<std::uint32_t>(Entry::view)) {
      view = read_view(record.payload);
      assemblies.assign(view.members.size(), {});  // what the view has not completed, comes again
      return;
    }
    Bytes bytes(record.payload);
    const auto turn = bytes.number<std::uint64_t>();
    const auto sender = bytes.number<std::uint64_t>();
    if (sender >= view.members.size()) throw Error("there is no such sender in its view");
    Assembly& assembly = assemblies[sender];
    const bool continues = record.kind == static_cast<std::uint32_t>(Entry::part);
    if (!assembly.add({.message = bytes.rest(), .turn = turn, .continues = continues})) return;
    upcall({.view = view.number, .sender = view.members[sender], .message = assembly.message()});
    assembly.let_go();
    ++messages;
  });
  return messages;
}

void Journal::begin_view(std::uint64_t number, const std::vector<std::string>& members) {
  std::vector<std::byte> payload;
  put(payload, number);
  put(payload, static_cast<std::uint32_t>(members.size()));
  for (const std::string& member : members) {
    put(payload, static_cast<std::uint8_t>(member.size()));
    const auto bytes = std::as_bytes(std::span(member));
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  commit_->append(static_cast<std::uint32_t>(Entry::view), {}, payload);
}

void Journal::append(std::uint32_t sender, const Record& record) {
  const MessageHead head{.turn = record.turn, .sender = sender};
  commit_->append(static_cast<std::uint32_t>(record.continues ? Entry::part : Entry::message),
                  std::as_bytes(std::span(&head, 1)), record.message);
}

}  // namespace dunlin::multicast
