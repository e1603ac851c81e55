#include "multicast/journal.hpp"

#include <array>
#include <cstring>

#include <dunlin/error.hpp>

#include "multicast/long_messages.hpp"

namespace dunlin::multicast {
namespace {

/// In front of a message's bytes.
struct MessageHead {
  std::uint64_t slot;
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
    if (bytes > rest_.size()) throw Error("a record of a multicast's log is too short");
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

LoggedView read_view(std::span<const std::byte> payload) {
  Bytes bytes(payload);
  LoggedView view{.place = {}, .number = bytes.number<std::uint64_t>()};
  for (auto left = bytes.number<std::uint32_t>(); left > 0; --left)
    view.members.push_back(bytes.text(bytes.number<std::uint8_t>()));
  return view;
}

[[nodiscard]] bool is(const log::Record& record, Entry kind) noexcept {
  return record.kind == static_cast<std::uint32_t>(kind);
}

[[noreturn]] void refuse(const log::Log& log, std::uint64_t number, const std::string& why) {
  throw Error("log '" + log.name() + "' in '" + log.path() + "': record " + std::to_string(number) +
              " is not what a multicast writes: " + why);
}

}  // namespace

Replay::Replay(log::Log& log, std::uint64_t but_for)
    : log_(log), reader_(log, log.first()), but_for_(but_for) {}

bool Replay::step(const std::function<void(const Logged&)>& upcall, std::size_t records,
                  std::size_t bytes) {
  for (std::size_t done = 0; records > 0 && done < bytes; --records) {
    const std::optional<log::Record> record = reader_.next();
    if (!record) return false;
    done += record->payload.size();
    take(*record, upcall);
  }
  return true;
}

void Replay::take(const log::Record& record, const std::function<void(const Logged&)>& upcall) {
  if (is(record, Entry::view)) {
    LoggedView view = read_view(record.payload);
    view_ = view.number;
    members_ = std::move(view.members);
    reassemblies_.assign(members_.size(), {});  // what the view has not completed, comes again
    return;
  }
  Bytes bytes(record.payload);
  const auto slot = bytes.number<std::uint64_t>();
  const auto sender = bytes.number<std::uint64_t>();
  if (sender >= members_.size()) refuse(log_, record.number, "its view has no such sender");
  Reassembly& reassembly = reassemblies_[sender];
  if (!reassembly.add(
          {.message = bytes.rest(), .slot = slot, .continues = is(record, Entry::fragment)}))
    return;
  const struct LetGo {  // also of a message for which the upcall throws
    Reassembly& held;
    ~LetGo() { held.let_go(); }
  } afterwards{reassembly};
  if (but_for_ > 0) {
    --but_for_;
  } else {
    upcall({.view = view_, .sender = members_[sender], .message = reassembly.message()});
  }
}

Journal::Journal(std::shared_ptr<log::Disk> disk, const std::string& directory,
                 const std::string& name)
    : name_(name),
      disk_(std::move(disk)),
      log_(disk_->open(directory),
           {.name = name,
            .on_record = [this](const log::Record& record,
                                std::uint64_t chain) { note_view(record, chain); }}),
      commit_(std::make_unique<log::GroupCommit>(*disk_, log_)) {
  known_ = {.number = log_.next(), .chain = log_.chain()};
}

void Journal::note_view(const log::Record& record, std::uint64_t chain_before) {
  if (!is(record, Entry::view)) return;
  if (views_.size() == kMaxLoggedViews) views_.erase(views_.begin());
  views_.push_back(read_view(record.payload));
  views_.back().place = {.number = record.number, .chain = chain_before};
}

JournalState Journal::read_state(bool live) {
  JournalState state{.end = {.number = log_.next(), .chain = log_.chain()}, .views = {}};
  if (live) {
    state.views.push_back({.place = {}, .number = last_view_});
    return state;
  }
  if (state.end != known_) {  // a view ended while logs were made equal
    views_.clear();
    log::LogReader reader(log_, log_.first());
    for (std::uint64_t chain = reader.chain(); const auto record = reader.next();
         chain = reader.chain())
      note_view(*record, chain);
    known_ = state.end;
  }
  state.views = views_;
  return state;
}

void Journal::begin_view(std::uint64_t number, const std::vector<std::string>& members) {
  last_view_ = number;
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
  const MessageHead head{.slot = record.slot, .sender = sender};
  commit_->append(static_cast<std::uint32_t>(record.continues ? Entry::fragment : Entry::message),
                  std::as_bytes(std::span(&head, 1)), record.message);
}

}  // namespace dunlin::multicast
