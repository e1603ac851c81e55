#include <string>

#include <gtest/gtest.h>

#include "store_command/server_process.hpp"

/// Servers of one store whose options differ.
namespace {

using dunlin::test::contains;
using dunlin::test::ServerProcess;

TEST(StoreServeOptions, ThatDifferAreToldByBothServers) {
  const std::string group = dunlin::test::fresh_group();
  ServerProcess a(group, {"--members", "a,b", "--name", "a", "--most-members", "4"});
  ServerProcess b(group,
                  {"--members", "a,b", "--name", "b", "--most-members", "4", "--eviction", "lru"});
  for (ServerProcess* const server : {&a, &b}) {
    const std::string told = server->receive_line_of("store 'store': ");
    EXPECT_TRUE(contains(told, "evict")) << told;
  }
  a.end();
  b.end();
}

}  // namespace
