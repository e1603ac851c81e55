#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "endpoint.hpp"
#include "read_file.hpp"
#include "standard_output.hpp"
#include "store/client.hpp"
#include "store/progress_bar.hpp"
#include "store/tools.hpp"

/// The tools that look at, and change, which members hold the keys.
namespace dunlin::app::resp {
namespace {

constexpr std::chrono::milliseconds kLookInterval{100};

/// A member, as DUNLIN STATUS has it.
struct Member {
  std::int64_t rank = 0;
  std::string name = {};
  std::string served_at = {};
  std::uint64_t weight = 0;
  std::uint64_t owned = 0;
  std::uint64_t copies = 0;
  std::uint64_t partial = 0;
  bool takes = true;
  [[nodiscard]] std::uint64_t held() const noexcept { return owned + copies + partial; }
};

struct StoreStatus {
  std::int64_t rank = 0;  // of the server that was asked
  std::uint64_t slots = 0;
  std::uint64_t copies = 0;
  std::uint64_t lost = 0;
  std::uint64_t lacking = 0;
  std::uint64_t moving = 0;
  std::vector<Member> members = {};

  /// The member of the server that was asked.
  [[nodiscard]] Member own() const {
    const auto found = std::ranges::find(members, rank, &Member::rank);
    return found == members.end() ? Member{.rank = rank} : *found;
  }
  /// How many slots, and copies of slots, a member of that weight has in the end.
  [[nodiscard]] std::uint64_t share_of(std::uint64_t weight) const {
    std::uint64_t weights = 0;
    for (const Member& member : members) weights += member.weight;
    return weights == 0 ? 0 : std::min(slots, slots * copies * weight / weights);
  }
};

/// A map of RESP, which is a list of names and values in the protocol that the tools speak.
class Map {
 public:
  explicit Map(const Client::Answer& answer) : pairs_(answer.list) {}
  [[nodiscard]] const Client::Answer& at(std::string_view name) const {
    for (std::size_t i = 0; i + 1 < pairs_.size(); i += 2)
      if (pairs_[i].text == name) return pairs_[i + 1];
    throw Error(
        fmt::format("store: the server's DUNLIN STATUS has no '{}'; it is of another "
                    "release than this tool",
                    name));
  }
  [[nodiscard]] std::uint64_t number(std::string_view name) const {
    return static_cast<std::uint64_t>(at(name).number);
  }

 private:
  const std::vector<Client::Answer>& pairs_;
};

StoreStatus ask_status(Client& client) {
  const Client::Answer answer = client.ask({"DUNLIN", "STATUS"});
  const Map all(answer);
  StoreStatus status{.rank = all.at("rank").number,
                     .slots = all.number("slots"),
                     .copies = all.number("copies"),
                     .lost = all.number("lost"),
                     .lacking = all.number("lacking"),
                     .moving = all.number("moving")};
  for (const Client::Answer& one : all.at("members").list) {
    const Map member(one);
    const std::uint64_t port = member.number("port");
    status.members.push_back(
        {.rank = member.at("rank").number,
         .name = member.at("name").text,
         .served_at = port == 0 ? "" : fmt::format("{}:{}", member.at("host").text, port),
         .weight = member.number("weight"),
         .owned = member.number("owned"),
         .copies = member.number("copies"),
         .partial = member.number("partial"),
         .takes = member.number("takes") != 0});
  }
  return status;
}

/// A member that serves no clients has no name that servers know.
std::string name_of(const Member& member) {
  return member.name.empty() ? fmt::format("of rank {}", member.rank)
                             : fmt::format("'{}'", member.name);
}

std::string table_of(const StoreStatus& status) {
  std::size_t names = std::string_view("member").size();
  std::size_t places = std::string_view("serves at").size();
  for (const Member& member : status.members) {
    names = std::max(names, member.name.size());
    places = std::max(places, member.served_at.size());
  }
  std::string text =
      fmt::format("{:>4}  {:<{}}  {:<{}}  {:>6}  {:>5}  {:>6}  {:>6}  {}\n", "rank", "member",
                  names, "serves at", places, "weight", "owns", "copies", "moving", "takes more");
  for (const Member& member : status.members)
    text += fmt::format("{:>4}  {:<{}}  {:<{}}  {:>6}  {:>5}  {:>6}  {:>6}  {}\n", member.rank,
                        member.name.empty() ? "-" : member.name, names,
                        member.served_at.empty() ? "-" : member.served_at, places, member.weight,
                        member.owned, member.copies, member.partial,
                        member.weight == 0 ? "-"
                        : member.takes     ? "yes"
                                           : "no room");
  return text;
}

std::string summary_of(const StoreStatus& status) {
  if (status.slots == 0)
    return "The members have not dealt the keys yet: not all founders have made their stores.\n";
  std::string text = fmt::format("{} slots, each at {} member{}: ", status.slots, status.copies,
                                 status.copies == 1 ? "" : "s");
  if (status.lost + status.lacking + status.moving == 0) return text + "all are in their places.\n";
  text += fmt::format("{} moving, {} with fewer copies, {} lost.\n", status.moving, status.lacking,
                      status.lost);
  if (status.lost > 0)
    text += "All members that held the lost slots have failed, and their keys are gone.\n";
  return text;
}

/// Asks for it by one connection, and looks by another one how far it is until the reply comes.
template <class Show>
StoreStatus change_share(const ToolOptions& options, std::string_view word, const Show& show) {
  const Endpoint endpoint = Endpoint::parse("--resp", options.endpoint, kDefaultEndpoint);
  const std::string password = read_secret_file(options.password_file, "--password-file");
  Client changes(endpoint, password);
  Client looks(endpoint, password);
  show(ask_status(looks));
  changes.send({"DUNLIN", word});
  while (!changes.wait_for_reply(kLookInterval)) show(ask_status(looks));
  changes.take();
  return ask_status(looks);
}

}  // namespace

void status(const ToolOptions& options) {
  Client client(Endpoint::parse("--resp", options.endpoint, kDefaultEndpoint),
                read_secret_file(options.password_file, "--password-file"));
  const StoreStatus now = ask_status(client);
  say(table_of(now) + summary_of(now));
}

void drain(const ToolOptions& options) {
  std::uint64_t slots = 0;
  ProgressBar bar("hands its keys over", 0);
  const StoreStatus now = change_share(options, "DRAIN", [&](const StoreStatus& status) {
    const std::uint64_t held = status.own().held();
    slots = std::max(slots, held);
    bar.set_total(slots);
    bar.show(slots - held);
  });
  bar.clear();
  say(fmt::format("member {} holds no keys any more, and serves those of the others\n",
                  name_of(now.own())));
}

void rebalance(const ToolOptions& options) {
  ProgressBar bar("gets its share of the keys", 0);
  const StoreStatus now = change_share(options, "REBALANCE", [&](const StoreStatus& status) {
    const Member own = status.own();
    bar.set_total(status.share_of(own.weight));
    bar.show(own.owned + own.copies);
  });
  bar.clear();
  const Member own = now.own();
  say(fmt::format("member {} has its share of the keys: {} of {} slots{}\n", name_of(own),
                  own.owned, now.slots,
                  now.copies == 1 ? "" : fmt::format(", and copies of {} others", own.copies)));
}

}  // namespace dunlin::app::resp
