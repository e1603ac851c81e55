#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <dunlin/remote/status.hpp>

namespace dunlin::remote {
namespace {

constexpr std::array<std::string_view, 6> kObjects{"store", "container", "queue",
                                                   "map",   "segment",   "pool"};

/// All layers have these, so the words are right for each.
TEST(Status, NamesNoObjectButTheCallers) {
  for (int i = 0; i < kStatuses; ++i) {
    const auto status = static_cast<Status>(i);
    if (status == Status::broken_promise) continue;  // of containers only
    for (const std::string_view object : kObjects) {
      EXPECT_EQ(describe(status).find(object), std::string_view::npos) << describe(status);
      const std::string text = describe(status, "thing");
      EXPECT_EQ(text.find(object), std::string::npos) << text;
    }
  }
  for (const std::string_view object : kObjects)
    for (const Status status : {Status::full, Status::refused, Status::not_allowed,
                                Status::too_long, Status::out_of_range, Status::empty})
      EXPECT_NE(describe(status, object).find(object), std::string::npos);
}

}  // namespace
}  // namespace dunlin::remote
