#include "store/request_parser.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store_command/parser_fuzz.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

namespace {

using dunlin::app::resp::RequestParser;
using dunlin::test::contains;
using dunlin::test::parse_all;
using dunlin::test::ParsedAll;
using Parsed = RequestParser::Parsed;
using Words = std::vector<std::string>;

ParsedAll parse(const std::string& bytes) { return parse_all(bytes, {bytes.size()}); }

std::string mistake_of(const std::string& bytes) { return parse(bytes).mistake; }

TEST(RequestParser, FindsTheWordsOfAnArray) {
  const ParsedAll all = parse("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n");
  ASSERT_EQ(all.requests.size(), 1U);
  EXPECT_EQ(all.requests[0], (Words{"SET", "k", "a\r\nb"}));
  EXPECT_EQ(all.bytes, 30U);
}

TEST(RequestParser, FindsAllRequestsOfAPipeline) {
  const ParsedAll all =
      parse("*1\r\n$4\r\nPING\r\nPING\r\n*0\r\n*-1\r\n\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n");
  EXPECT_EQ(all.requests, (std::vector<Words>{{"PING"}, {"PING"}, {}, {}, {}, {"a", ""}}));
}

TEST(RequestParser, WaitsForTheRest) {
  const std::string whole = "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    RequestParser parser;
    EXPECT_EQ(parser.parse(std::string_view(whole).substr(0, bytes)), Parsed::part) << bytes;
    EXPECT_GT(parser.bytes_needed(), bytes);
    EXPECT_LE(parser.bytes_needed(), whole.size());
    EXPECT_EQ(parser.parse(whole), Parsed::request) << bytes;
  }
}

TEST(RequestParser, SaysHowManyBytesALongArgumentNeeds) {
  RequestParser parser;
  EXPECT_EQ(parser.parse("*1\r\n$1000000\r\nabc"), Parsed::part);
  EXPECT_EQ(parser.bytes_needed(), 4U + 10U + 1000000U + 2U);
}

TEST(RequestParser, SplitsALine) {
  EXPECT_EQ(parse("  set  key\tvalue \r\n").requests,
            (std::vector<Words>{{"set", "key", "value"}}));
  EXPECT_EQ(parse("get x\n").requests, (std::vector<Words>{{"get", "x"}}));
  EXPECT_EQ(parse(R"(set k "two words\n\x41\"")"
                  "\r\n")
                .requests,
            (std::vector<Words>{{"set", "k", "two words\nA\""}}));
  EXPECT_EQ(parse("set k 'it\\'s \\n'\r\n").requests,
            (std::vector<Words>{{"set", "k", "it's \\n"}}));
  EXPECT_EQ(parse("set k \"\"\r\n").requests, (std::vector<Words>{{"set", "k", ""}}));
}

TEST(RequestParser, NamesTheMistake) {
  EXPECT_EQ(mistake_of("*2\r\n:4\r\n"), "ERR Protocol error: expected '$', got ':'");
  EXPECT_EQ(mistake_of("*1\r\n\x01"), "ERR Protocol error: expected '$', got '?'");
  EXPECT_EQ(mistake_of("*x\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(mistake_of("*1048577\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(mistake_of("*1\r\n$-1\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(mistake_of("*1\r\n$536870913\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(mistake_of("*1\r\n$99999999999999999999\r\n"),
            "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(mistake_of("*1\r\n$2\r\nabcd"), "ERR Protocol error: no line end behind an argument");
  EXPECT_EQ(mistake_of("set k \"v\r\n"), "ERR Protocol error: unbalanced quotes in request");
  EXPECT_EQ(mistake_of("set k \"v\"w\r\n"), "ERR Protocol error: unbalanced quotes in request");
  EXPECT_EQ(mistake_of("*" + std::string(40, '1')),
            "ERR Protocol error: too big mbulk count string");
  EXPECT_EQ(mistake_of("*1\r\n$" + std::string(40, '1')),
            "ERR Protocol error: too big bulk count string");
  EXPECT_EQ(mistake_of(std::string(70'000, 'x')), "ERR Protocol error: too big inline request");
}

TEST(RequestParser, BoundsAllArgumentsTogether) {
  const std::string value(1'000'000, 'v');
  std::string bytes = "*12\r\n";
  for (int i = 0; i < 12; ++i) bytes += "$1000000\r\n" + value + "\r\n";
  EXPECT_EQ(parse(bytes + "PING\r\n").requests,
            (std::vector<Words>{{"ERR the request has over 8388608 bytes, which is the limit"},
                                {"PING"}}));
}

/// RSP-P1: a request over a limit is read to its end and refused, and its bytes are not kept.
TEST(RequestParser, RefusesWhatIsTooLong) {
  const std::string value(2'000'000, 'v');
  const std::string set = "*3\r\n$3\r\nSET\r\n$2000000\r\n" + value + "\r\n$1\r\nv\r\n";
  const std::vector<Words> expected{
      {"ERR a value or key has over 1048576 bytes, which is the limit"}, {"PING"}};
  EXPECT_EQ(parse(set + "PING\r\n").requests, expected);
  std::vector<std::size_t> cuts;
  for (std::size_t cut = 0; cut < 60; ++cut) cuts.push_back(cut);
  for (std::size_t cut = 60; cut < set.size(); cut += 7'777) cuts.push_back(cut);
  for (std::size_t cut = set.size() - 12; cut <= set.size() + 6; ++cut) cuts.push_back(cut);
  std::ranges::sort(cuts);
  EXPECT_EQ(parse_all(set + "PING\r\n", cuts).requests, expected);
  std::string many = "*70000\r\n";
  for (int i = 0; i < 70'000; ++i) many += "$1\r\na\r\n";
  EXPECT_EQ(parse(many + "PING\r\n").requests,
            (std::vector<Words>{{"ERR the request has over 65536 arguments, which is the limit"},
                                {"PING"}}));
}

TEST(RequestParser, TakesLittleFromStrangers) {
  RequestParser parser;
  parser.set_stranger(true);
  EXPECT_EQ(parser.parse("*11\r\n"), Parsed::mistake);
  EXPECT_TRUE(contains(parser.mistake(), "unauthenticated multibulk length"));
  RequestParser second;
  second.set_stranger(true);
  EXPECT_EQ(second.parse("*1\r\n$16385\r\n"), Parsed::mistake);
  EXPECT_TRUE(contains(second.mistake(), "unauthenticated bulk length"));
}

std::string random_bytes(std::mt19937_64& random) {
  static const std::vector<std::string> pieces{
      "*2\r\n", "$3\r\n",          "abc\r\n",    "*1\r\n$4\r\nPING\r\n",
      "\r\n",   "get \"a b\"\r\n", "$0\r\n\r\n", "*",
      "$",      "-1\r\n",          "'",          "x",
      "\n",     "*0\r\n"};
  std::string bytes;
  for (std::uint64_t i = random() % 20; i > 0; --i) {
    bytes += pieces[random() % pieces.size()];
    if (random() % 8 == 0) bytes += static_cast<char>(random());
  }
  return bytes;
}

/// RSP-P2.
TEST(RequestParser, FindsTheSameIfCutAtAnyByte) {
  const std::string bytes =
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\nget \"a b\"\r\n*0\r\n*1\r\n$0\r\n\r\n*1\r\n:";
  const ParsedAll whole = parse(bytes);
  ASSERT_EQ(whole.requests.size(), 4U);
  ASSERT_NE(whole.mistake, "");
  std::vector<std::size_t> each;
  for (std::size_t first = 1; first < bytes.size(); ++first) {
    each.push_back(first);
    for (std::size_t second = first; second < bytes.size(); ++second) {
      const ParsedAll cut = parse_all(bytes, {first, second, bytes.size()});
      ASSERT_EQ(cut.requests, whole.requests) << first << " " << second;
      ASSERT_EQ(cut.mistake, whole.mistake) << first << " " << second;
    }
  }
  each.push_back(bytes.size());
  EXPECT_EQ(parse_all(bytes, each).requests, whole.requests);
}

/// RSP-P1: each round's bytes are in a block of their own size, so that the address sanitizer sees
/// a read behind them.
TEST(RequestParser, OutlivesRandomBytesAndWhatIsTruncated) {
  std::mt19937_64 random(11);
  std::size_t mistakes = 0;
  for (std::uint32_t round = 0; round < dunlin::test::rounds(20'000); ++round) {
    std::string bytes = "*2\r\n$3\r\nGET\r\n$5\r\nhello\r\n";
    for (std::uint64_t i = random() % 4; i > 0; --i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    const std::vector<char> block(bytes.begin(), bytes.end());
    RequestParser parser;
    switch (parser.parse({block.data(), block.size()})) {
      case Parsed::request:
        ASSERT_LE(parser.bytes(), block.size());
        break;
      case Parsed::part:
        ASSERT_GT(parser.bytes_needed(), block.size());
        break;
      case Parsed::skipped:
      case Parsed::refused:
        ASSERT_LE(parser.bytes(), block.size());
        break;
      case Parsed::mistake:
        ASSERT_FALSE(parser.mistake().empty());
        ++mistakes;
    }
  }
  EXPECT_GT(mistakes, dunlin::test::rounds(20'000) / 10);
}

/// RSP-P2.
TEST(RequestParser, FindsTheSameHoweverTheBytesAreCut) {
  std::mt19937_64 random(7);
  std::size_t requests = 0;
  std::size_t mistakes = 0;
  for (std::uint32_t round = 0; round < dunlin::test::rounds(20'000); ++round) {
    const std::string bytes = random_bytes(random);
    const ParsedAll whole = parse(bytes);
    std::vector<std::size_t> cuts;
    for (std::size_t at = 0; at < bytes.size();) cuts.push_back(at += 1 + random() % 5);
    const ParsedAll cut = parse_all(bytes, cuts);
    ASSERT_EQ(cut.requests, whole.requests) << "round " << round;
    ASSERT_EQ(cut.mistake, whole.mistake) << "round " << round;
    ASSERT_EQ(cut.bytes, whole.bytes) << "round " << round;
    requests += whole.requests.size();
    mistakes += whole.mistake.empty() ? 0 : 1;
  }
  EXPECT_GT(requests, dunlin::test::rounds(20'000) / 10);
  EXPECT_GT(mistakes, dunlin::test::rounds(20'000) / 10);
}

}  // namespace
