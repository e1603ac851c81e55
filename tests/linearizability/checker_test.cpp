#include <string>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>

#include "support/histories.hpp"

/// The checker itself: what it accepts, and what it must not.
namespace dunlin::test {
namespace {

using Model = Histories::Model;

struct Checker : testing::Test {
  void SetUp() override {
    if (const std::string why = Histories::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  Histories histories;
};

/// Two clients put one after the other; a third gets this value after both.
void put_twice_and_get(Histories& histories, const char* got) {
  histories.begin("puts", Model::one_register);
  histories.put(0, "x", "1", 10, 20);
  histories.put(1, "x", "2", 30, 40);
  histories.get(2, "x", got, 50, 60);
}

TEST_F(Checker, AcceptsTheLatestPut) {
  put_twice_and_get(histories, "2");
  const auto verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
  EXPECT_EQ(verdict.text, "checked 1 histories, 3 operations, 0 wrong\n");
}

TEST_F(Checker, RejectsAStaleRead) {
  put_twice_and_get(histories, "1");
  const auto verdict = histories.check();
  EXPECT_FALSE(verdict.linearizable);
  EXPECT_NE(verdict.text.find("puts is not linearizable"), std::string::npos) << verdict.text;
  EXPECT_NE(verdict.text.find("client 2: get x 1 from 50 to 60"), std::string::npos)
      << verdict.text;
}

TEST_F(Checker, RejectsAValueThatNobodyPut) {
  put_twice_and_get(histories, "3");
  EXPECT_FALSE(histories.check().linearizable);
}

TEST_F(Checker, NamesTheOneWrongHistoryAmongMany) {
  for (int i = 0; i < 20; ++i) {
    histories.begin("good-" + std::to_string(i), Model::one_register);
    histories.put(0, "x", "1", 1, 2);
    histories.get(1, "x", "1", 3, 4);
  }
  put_twice_and_get(histories, "1");
  const auto verdict = histories.check();
  EXPECT_FALSE(verdict.linearizable);
  EXPECT_EQ(verdict.text.find("good-"), std::string::npos) << verdict.text;
  EXPECT_NE(verdict.text.find("checked 21 histories, 43 operations, 1 wrong"), std::string::npos);
}

TEST_F(Checker, TakesEqualStampsForConcurrent) {
  histories.begin("equal", Model::one_register);
  histories.put(0, "x", "1", 10, 20);
  histories.get(1, "x", "0", 20, 30);
  histories.get(2, "x", "1", 10, 10);
  EXPECT_FALSE(histories.check().linearizable) << "the gets contradict each other";
  Histories later;
  later.begin("equal", Model::one_register);
  later.put(0, "x", "1", 10, 20);
  later.get(1, "x", "0", 20, 30);
  EXPECT_TRUE(later.check().linearizable);
}

TEST_F(Checker, LetsAnUnansweredPutHappenLateOrNever) {
  histories.begin("late", Model::one_register);
  histories.put(0, "x", "1", 10, Histories::kNever);
  histories.get(1, "x", "0", 20, 30);
  histories.get(1, "x", "1", 40, 50);
  histories.begin("never", Model::one_register);
  histories.put(0, "x", "1", 10, Histories::kNever);
  histories.get(1, "x", "0", 20, 30);
  const auto verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
  histories.begin("taken-back", Model::one_register);
  histories.put(0, "x", "1", 10, Histories::kNever);
  histories.get(1, "x", "1", 20, 30);
  histories.get(1, "x", "0", 40, 50);
  EXPECT_FALSE(histories.check().linearizable);
}

TEST_F(Checker, LooksAtEachKeyOfAMapAlone) {
  histories.begin("map", Model::map);
  histories.get(0, "a", Histories::kAbsent, 1, 2);
  histories.put(0, "a", "1", 3, 4);
  histories.get(1, "b", Histories::kAbsent, 5, 6);
  histories.put(1, "b", "2", 7, 8);
  histories.erase(0, "a", 9, 10);
  histories.get(1, "b", "2", 11, 12);
  histories.get(1, "a", Histories::kAbsent, 13, 14);
  EXPECT_TRUE(histories.check().linearizable);
  histories.get(0, "a", "1", 15, 16);
  const auto verdict = histories.check();
  EXPECT_FALSE(verdict.linearizable) << "an erased value came back";
  EXPECT_EQ(verdict.text.find(" b "), std::string::npos) << verdict.text;
}

TEST_F(Checker, LooksAtAllKeysOfATransactionAtOnce) {
  histories.begin("good", Model::transactions);
  histories.transaction(0, "", "a=1,b=1", 1, 2);
  histories.transaction(0, "a=1", "b=2", 3, 8);
  histories.transaction(1, "a=1,b=1,c=-", "", 4, 5);
  histories.transaction(1, "a=1,b=2", "", 6, 7);
  histories.begin("never", Model::transactions);
  histories.transaction(0, "a=5", "a=6", 1, Histories::kNever);
  histories.transaction(1, "a=-", "a=1", 2, 3);
  histories.begin("late", Model::transactions);
  histories.transaction(0, "a=1", "a=6,b=6", 1, Histories::kNever);
  histories.transaction(1, "a=-", "a=1", 2, 3);
  histories.transaction(1, "b=6", "", 4, 5);
  const auto verdict = histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
  for (const bool of_one_key : {false, true}) {
    Histories skewed;  // each has read what the other has written
    skewed.begin("skew", Model::transactions);
    skewed.transaction(0, "a=-", "b=1", 1, 4);
    skewed.transaction(1, of_one_key ? "a=-" : "b=-", of_one_key ? "b=2" : "a=1", 2, 3);
    EXPECT_EQ(skewed.check().linearizable, of_one_key);
  }
  Histories torn;
  torn.begin("torn", Model::transactions);
  torn.transaction(0, "", "a=1,b=1", 1, Histories::kNever);
  torn.transaction(1, "a=1,b=-", "", 2, 3);
  EXPECT_FALSE(torn.check().linearizable);
}

TEST_F(Checker, RefusesWhatIsNoHistory) {
  for (const char* const wrong :
       {"0 put x 1 1 2\n", "history one\n", "history one list\n", "history one map\n0 put x 1 2\n",
        "history one map\n0 get x 1 2 -\n", "history one map\n0 put x 1 2 1\n",
        "history one map\n0 swap x 1 2 3\n", "history one map\nzero put x 1 2 3\n",
        "history one map\n0 transaction - x=1 2 3\n", "history one transactions\n0 put x 1 2 3\n",
        "history one transactions\n0 transaction x y=1 2 3\n"}) {
    Histories some;
    some.append(wrong);
    EXPECT_THROW(static_cast<void>(some.check()), Error) << wrong;
  }
}

}  // namespace
}  // namespace dunlin::test
