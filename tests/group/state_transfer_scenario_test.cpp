#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "group/state_transfer.hpp"
#include "support/scenario.hpp"

/// State transfer, command by command; scenarios/state_transfer/README.md has the commands.
namespace dunlin::group {
namespace {

using test::Command;

constexpr std::uint64_t kLongNs = 10'000'000;

/// A part of the subgroup 'log', which has a state, waits for one, or is not able to give it yet.
class Part final : public SubgroupParticipant {
 public:
  explicit Part(std::string name, std::string& told) : name_(std::move(name)), told_(told) {}
  void begin(Fabric&, const Subgroup&) override {}
  std::size_t poll() override { return 0; }
  void wedge() noexcept override {}
  [[nodiscard]] std::span<const std::uint64_t> received() const noexcept override { return {}; }
  void finish(std::span<const std::uint64_t>, std::span<const Rank>) override {}
  [[nodiscard]] bool wants_state() const noexcept override { return waits; }
  std::optional<std::vector<std::byte>> give_state() override {
    if (busy) return std::nullopt;
    told_ += name_ + " gives its state\n";
    const auto bytes = std::as_bytes(std::span(state));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  void take_state(std::span<const std::byte> given) override {
    state.assign(reinterpret_cast<const char*>(given.data()), given.size());
    told_ += name_ + " takes the state '" + state + "'\n";
  }

  std::string state;
  bool waits = false;
  bool busy = false;

 private:
  std::string name_;
  std::string& told_;
};

class Scenario {
 public:
  std::string execute(const Command& command) {
    static const std::map<std::string, void (Scenario::*)(const Command&)> commands{
        {"nodes", &Scenario::nodes}, {"state", &Scenario::state}, {"waits", &Scenario::waits},
        {"busy", &Scenario::busy},   {"ready", &Scenario::busy},  {"crash", &Scenario::crash},
        {"view", &Scenario::view},   {"run", &Scenario::run}};
    const auto found = commands.find(command.front());
    if (found == commands.end()) throw std::runtime_error("there is no such command");
    told_.clear();
    (this->*found->second)(command);
    return told_;
  }

 private:
  struct Node {
    std::unique_ptr<ControlChannel> channel;
    std::unique_ptr<Part> participant;
    StateTransfer transfer;
    bool polls = false;
    bool lost = false;
  };

  [[nodiscard]] Rank rank_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) throw std::runtime_error("there is no node '" + name + "'");
    return static_cast<Rank>(found - names_.begin());
  }
  [[nodiscard]] Node& node_of(const std::string& name) { return nodes_[rank_of(name)]; }

  void nodes(const Command& command) {
    names_.assign(command.begin() + 1, command.end());
    world_ = std::make_unique<sim::World>(sim::profile("ideal"),
                                          static_cast<std::uint32_t>(names_.size()), 1);
    nodes_.resize(names_.size());
    for (Rank rank = 0; rank < nodes_.size(); ++rank) {
      nodes_[rank].channel = std::make_unique<ControlChannel>(world_->fabric(rank));
      nodes_[rank].participant = std::make_unique<Part>(names_[rank], told_);
      world_->attach(rank, [this, rank] { return poll(rank); });
    }
  }
  /// state a text
  void state(const Command& command) { node_of(command.at(1)).participant->state = command.at(2); }
  void waits(const Command& command) {
    Node& node = node_of(command.at(1));
    node.participant->waits = true;
    node.transfer.begin({node.participant.get()});
  }
  void busy(const Command& command) {
    node_of(command.at(1)).participant->busy = command.front() == "busy";
    world_->on(rank_of(command.at(1)), [] {});
  }
  void crash(const Command& command) {
    world_->crash(rank_of(command.at(1)));
    node_of(command.at(1)).polls = false;
  }
  /// view 5 at c: a b, joined c: the nodes behind "at" enter that view.
  void view(const Command& command) {
    const auto words_behind = [&](const std::string& mark) {
      const auto at = std::ranges::find(command, mark);
      Command words;
      for (auto word = at; word != command.end() && ++word != command.end();) {
        if (*word == "of" || *word == "joined" || *word == "at") break;
        words.push_back(*word);
      }
      return words;
    };
    const Command members = words_behind("of");
    Subgroups::InView in_view;
    in_view.subgroup.name = "log";
    in_view.subgroup.view = std::stoull(command.at(1));
    for (const std::string& member : members) in_view.subgroup.members.push_back(rank_of(member));
    View view{.number = in_view.subgroup.view, .members = {}};
    for (const std::string& name : words_behind("joined"))
      view.joined.push_back(world_->fabric(0).member_name(rank_of(name)));
    Command at = words_behind("at");
    if (at.empty()) at = members;
    for (const std::string& name : at) {
      Node& node = node_of(name);
      in_view.ours = std::ranges::find(members, name) != members.end();
      node.polls = true;
      node.transfer.enter(view, {in_view}, *node.channel);
      tell_loss(rank_of(name));
      world_->on(rank_of(name), [] {});
    }
  }
  void run(const Command&) {
    world_->run_for(kLongNs);
    for (Rank rank = 0; rank < nodes_.size(); ++rank)
      if (nodes_[rank].polls && nodes_[rank].transfer.lacks(0) && !nodes_[rank].lost)
        told_ += names_[rank] + " still waits\n";
    if (told_.empty()) told_ = "nothing happens\n";
  }

  std::size_t poll(Rank rank) {
    Node& node = nodes_[rank];
    std::size_t done = world_->fabric(rank).poll();
    if (!node.polls) return done;
    done += node.channel->poll([&](Rank from, std::vector<std::byte> bytes) {
      std::optional<ControlMessage> message = decode(std::move(bytes));
      if (!message) return;
      const std::string about = " of view " + std::to_string(message->view) + "\n";
      if (message->kind == ControlMessage::Kind::want)
        told_ += names_[rank] + " is asked by " + names_[from] + " for the state" + about;
      else if (!message->good)
        told_ += names_[rank] + " is refused by " + names_[from] + " the state" + about;
      else if (message->view != 0)
        told_ += names_[rank] + " is sent by " + names_[from] + " the state" + about;
      node.transfer.receive(from, std::move(*message));
    });
    done += node.transfer.poll({node.participant.get()});
    tell_loss(rank);
    return done;
  }
  void tell_loss(Rank rank) {
    Node& node = nodes_[rank];
    if (node.lost || node.transfer.lost().empty()) return;
    node.lost = true;
    told_ += names_[rank] + " gives up: nobody has the state of '" + node.transfer.lost() + "'\n";
  }

  std::string told_;
  std::vector<std::string> names_;
  std::unique_ptr<sim::World> world_;
  std::vector<Node> nodes_;
};

TEST(StateTransfer, DoesWhatItsScenariosSay) {
  test::run_scenarios(DUNLIN_SCENARIOS "/state_transfer", [] {
    const auto scenario = std::make_shared<Scenario>();
    return [scenario](const Command& command) { return scenario->execute(command); };
  });
}

}  // namespace
}  // namespace dunlin::group
