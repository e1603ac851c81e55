// Put, then signal: the first member writes a text into the second one's memory, then a word that
// announces it. A reader that sees the word also sees the text. Start it twice:
//
//     ./fabric_put & ./fabric_put

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string_view>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/memory.hpp>
#include <dunlin/join.hpp>

namespace {

constexpr std::string_view kText = "one-sided greetings";

struct Box {
  std::uint64_t length;  // 0 until the text is there
  char text[56];
};

void send(dunlin::Fabric& fabric, dunlin::RegionId box) {
  while (!fabric.connected(1, box)) fabric.poll();
  const std::uint64_t length = kText.size();
  dunlin::Completion done;
  const dunlin::Operation batch[] = {
      dunlin::put(1, box, offsetof(Box, text), kText.data(), kText.size()),
      dunlin::write(1, box, offsetof(Box, length), &length, sizeof length)
          .notify(done, dunlin::Notify::remotely),
  };
  if (!fabric.post(batch).all()) throw dunlin::Error("an idle queue has room for two operations");
  while (!done.finished()) fabric.poll();
}

void receive(dunlin::Fabric& fabric, const dunlin::Region& region) {
  const auto* box = reinterpret_cast<const Box*>(region.memory().data());
  std::uint64_t length = 0;
  while ((length = dunlin::memory::load(box->length)) == 0) fabric.poll();
  std::cout << "received: " << std::string_view(box->text, length) << '\n';
}

}  // namespace

int main() try {
  const auto fabric = dunlin::join({.group = "fabric_put", .members = 2});
  const dunlin::Region box = fabric->allocate({.name = "box", .bytes = sizeof(Box)});
  fabric->announce(box);
  if (fabric->rank() == 0) {
    send(*fabric, box.id());
  } else {
    receive(*fabric, box);
  }
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
