// A counter that several processes have together: what any of them adds, all add in the same order.
// Start it in three terminals, type numbers, kill one of them, and let another one in:
//
//     ./replicated_counter tutorial a  a b c    # and as b, and as c: these found the group
//     ./replicated_counter tutorial d           # comes into it later
//
// docs/tutorial.md builds it step by step.

#include <cstring>
#include <iostream>

#include <dunlin/dunlin.hpp>

#include "../typed_lines.hpp"

namespace {

constexpr std::uint32_t kLookMs = 10;          // how often we look at standard input
constexpr std::uint32_t kPatienceMs = 60'000;  // for others to come, and for the group to let us go
constexpr std::uint32_t kSilenceMs = 10'000;   // a member that hangs for so long counts as failed

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw dunlin::Error("usage: replicated_counter GROUP NAME [FOUNDER...]");
  const std::string name = argv[2];
  const std::vector<std::string> founders(argv + 3, argv + argc);

  const dunlin::GroupOptions options{
      .subgroups = {{.name = "additions"}},
      .rendezvous = dunlin::make_rendezvous({.group = argv[1], .silence_timeout_ms = kSilenceMs})};
  std::unique_ptr<dunlin::Fabric> fabric;
  if (!founders.empty())
    fabric = dunlin::join({.group = argv[1],
                           .names = founders,
                           .name = name,
                           .timeout_ms = kPatienceMs,
                           .silence_timeout_ms = kSilenceMs});
  const auto group = fabric ? std::make_unique<dunlin::Group>(*fabric, options)
                            : dunlin::Group::join(name, options, kPatienceMs);
  dunlin::Multicast additions(*group, "additions");

  std::int64_t value = 0;     // the same at all members, after the same additions
  std::size_t under_way = 0;  // of our own, which have not come back to us yet
  additions.on_delivery([&](std::span<const dunlin::multicast::Delivery> batch) {
    for (const dunlin::multicast::Delivery& delivery : batch) {
      std::int64_t number = 0;
      std::memcpy(&number, delivery.message.data(), sizeof number);
      value += number;
      std::cout << value << " after " << group->view().members[delivery.sender] << std::endl;
      if (delivery.sender == group->view().me) --under_way;
    }
  });

  const auto save = [&] {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto load = [&](std::span<const std::byte> state) {
    std::memcpy(&value, state.data(), sizeof value);
  };
  additions.on_state(save, load);
  group->on_view([](const dunlin::View& view) { std::cout << view << std::endl; });

  TypedLines input;
  const auto nothing_else = [] { return false; };
  while (!input.over() || under_way > 0) {
    dunlin::run_until(*group, nothing_else, kLookMs);
    while (const std::string* line = input.front()) {
      const std::int64_t number = std::strtoll(line->c_str(), nullptr, 10);
      const auto result = additions.send(std::as_bytes(std::span(&number, 1)));
      if (result != dunlin::multicast::SendResult::sent) break;  // no room: next time
      ++under_way;
      input.pop();
    }
  }

  group->leave();
  const auto gone = [&] { return group->ended(); };
  return dunlin::run_until(*group, gone, kPatienceMs) ? 0 : 1;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
