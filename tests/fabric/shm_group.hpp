#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/join.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"

namespace dunlin::test {

/// For loops of tests, where more nodes than processors poll.
inline void poll_politely(Fabric& fabric) {
  if (fabric.poll() == 0) std::this_thread::yield();
}

/// A fabric with a box that all members have, connected to all.
struct Member {
  explicit Member(const JoinOptions& options, std::size_t box_bytes = 4096)
      : fabric(join(options)),
        subscription(fabric->subscribe([this](const Event& event) { note(event); })),
        box(fabric->allocate({.name = "box", .bytes = box_bytes})) {
    fabric->announce(box);
    for (Rank peer = 0; peer < fabric->size(); ++peer)
      while (!fabric->connected(peer, box.id()) && !fabric->failed(peer)) poll_politely(*fabric);
  }

  [[nodiscard]] std::uint64_t word(std::size_t index) const {
    return memory::load(reinterpret_cast<const std::uint64_t*>(box.memory().data())[index]);
  }
  void write_word(Rank peer, std::size_t index, std::uint64_t value) {
    ASSERT_TRUE(fabric->post(dunlin::write(peer, box.id(), index * 8, &value, 8)).all());
  }
  void note(const Event& event) {
    if (event.kind != Event::Kind::peer_failed) return;
    failures.push_back(event.peer);
    failure_text += std::string(event.text) + "\n";
  }

  std::unique_ptr<Fabric> fabric;
  Subscription subscription;
  Region box;
  std::vector<Rank> failures;
  std::string failure_text;
};

/// All members as threads of this process; each runs `body`.
inline void run_members(std::uint32_t members, const std::function<void(Member&)>& body,
                        const std::string& group = fresh_group()) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < members; ++rank)
    threads.emplace_back([&body, &group, rank, members] {
      Member member({.group = group, .members = members, .rank = rank});
      body(member);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dunlin::test
