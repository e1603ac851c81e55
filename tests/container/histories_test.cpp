#include "container/histories.hpp"

#include <cstdint>

#include <gtest/gtest.h>

/// The search for an order is what judges the maps: it must find one, and must not make one up.
namespace dunlin {
namespace {

using container::MapCall;
using test::KeyHistory;
using test::kNoEnd;

constexpr std::uint64_t kUnended = 14;  // of each kind: more than can be tried one by one

/// Calls without an end, of which nothing is seen, and then calls that have ended.
KeyHistory after_unended_calls() {
  KeyHistory history;
  std::uint64_t event = 0;
  for (const MapCall call : {MapCall::assign, MapCall::erase})
    for (std::uint64_t i = 0; i < kUnended; ++i)
      history.add({.call = call, .value = ++event, .begin = event});
  return history;
}

TEST(KeyHistories, LetCallsWithoutAnEndHappenWheneverThatHelps) {
  KeyHistory history = after_unended_calls();
  std::uint64_t at = 1'000;
  for (int i = 0; i < 5; ++i, at += 10) {  // there, and not there: an assign, and an erase before
    history.add({.call = MapCall::assign, .value = at, .found = i > 0, .begin = at, .end = at + 1});
    history.add({.call = MapCall::find, .begin = at + 2, .end = at + 3});
    history.add({.call = MapCall::assign, .value = at + 4, .begin = at + 4, .end = at + 5});
  }
  EXPECT_TRUE(history.linearizable());
}

TEST(KeyHistories, KnowWhenNoOrderExplainsWhatWasFound) {
  KeyHistory history = after_unended_calls();
  history.add({.call = MapCall::assign, .value = 501, .begin = 501, .end = 502});
  history.add({.call = MapCall::find, .value = 500, .found = true, .begin = 503, .end = 504});
  EXPECT_FALSE(history.linearizable()) << "nobody wrote that";
}

TEST(KeyHistories, LetACallWithoutAnEndHappenOnce) {
  for (const bool is_twice : {false, true}) {
    KeyHistory history;
    history.add({.call = MapCall::assign, .value = 1, .begin = 1, .end = kNoEnd});
    history.add({.call = MapCall::find, .value = 1, .found = true, .begin = 2, .end = 3});
    history.add({.call = MapCall::assign, .value = 2, .found = true, .begin = 4, .end = 5});
    history.add(
        {.call = MapCall::find, .value = is_twice ? 1U : 2U, .found = true, .begin = 6, .end = 7});
    EXPECT_EQ(history.linearizable(), !is_twice);
  }
}

TEST(KeyHistories, LetNoCallHappenBeforeItBegins) {
  KeyHistory history;
  history.add({.call = MapCall::find, .value = 1, .found = true, .begin = 1, .end = 2});
  history.add({.call = MapCall::assign, .value = 1, .begin = 3, .end = kNoEnd});
  EXPECT_FALSE(history.linearizable());
}

}  // namespace
}  // namespace dunlin
