#include <string>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// Two programs whose rows differ, one of which is gone before the other one looks.
namespace dunlin {
namespace {

using test::contains;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

struct Here {
  Cell<int> step;
  Cell<double> load;
};
struct There {
  Cell<int> step;
  Cell<float> load;
};

TEST(TableRefusal, IsToldToTheEarlierMemberThoughTheLaterOneHasGone) {
  const std::string group = test::fresh_group();
  constexpr int kRefused = 7;
  Process later([&](Parent& parent) {
    const auto fabric = join({.group = group, .members = 2, .rank = 1});
    static_cast<void>(parent.receive_line());
    Table<There> table(fabric);
    try {
      static_cast<void>(run_until(
          table, [] { return false; }, test::kPatienceMs));
    } catch (const Error&) {
      return kRefused;
    }
    return 0;
  });
  const auto fabric = join({.group = group, .members = 2, .rank = 0});
  Table<Here> table(fabric);
  later.send_line("go");
  ASSERT_EQ(later.exit_code(), kRefused);
  while (!fabric->failed(1)) table.poll();
  EXPECT_FALSE(table.connected());
  EXPECT_EQ(table.core().state(1), RowState::refused);
  const std::string error = what_is_thrown_by([&] { table.check(); });
  EXPECT_TRUE(contains(error,
                       "column 'load' is 'f32 word @4 x1 =4 /4 +4' there and 'f64 word @8 x1 "
                       "=8 /8 +8' here"))
      << error;
}

}  // namespace
}  // namespace dunlin
