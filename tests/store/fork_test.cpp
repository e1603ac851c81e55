#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>
#include <dunlin/store.hpp>

#include "store/stores.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"

/// A member may fork; its child is no member.
namespace dunlin {
namespace {

using remote::Status;
using test::Parent;
using test::Process;

TEST(StoreFork, ACallOfTheChildEndsStoppedAndTheParentsChangesStay) {
  Process member([](Parent& parent) {
    const auto fabric = join({.group = test::fresh_group(), .members = 1});
    auto store = std::make_unique<Store>(*fabric, test::small_store());
    if (!store->put("key", "value").outcome().ok()) return 1;
    auto under_way = std::make_unique<StoreBatch>(*store);
    under_way->put("under way", std::as_bytes(std::span("value")));
    Process child([&](Parent&) {
      for (int i = 0; i < 10; ++i)
        if (store->put("child " + std::to_string(i), "child").wait() != Status::stopped) return 1;
      if (store->get("key").wait() != Status::stopped) return 2;
      if (store->progress().why_stopped().find("forked by a member") == std::string::npos) return 3;
      under_way.reset();
      store.reset();  // tells nobody, and gives nothing back
      return 0;
    });
    if (const int code = child.exit_code(); code != 0) {
      parent.send_line("the child saw what it should not: " + std::to_string(code));
      return 1;
    }
    for (int i = 0; i < 100; ++i)
      if (!store->put("parent " + std::to_string(i), std::to_string(i)).outcome().ok()) return 2;
    for (int i = 0; i < 100; ++i)
      if (store->get("parent " + std::to_string(i)).outcome().text() != std::to_string(i)) return 3;
    if (store->get("key").outcome().text() != "value") return 4;
    if (store->count().outcome().keys() != 102) return 5;
    parent.send_line("all are there");
    return 0;
  });
  EXPECT_EQ(member.receive_line(), "all are there");
  EXPECT_EQ(member.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin
