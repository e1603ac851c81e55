#include "fabric/rendezvous_fuzz.hpp"

#include <random>

#include <gtest/gtest.h>

/// Thousands of conversations that are almost right, always the same ones.
namespace dunlin::rendezvous {
namespace {

using namespace fuzz;

constexpr std::uint32_t kCases = 4000;
constexpr std::uint32_t kConversations = 1000;  // each with a handshake

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::vector<std::byte> mutated(std::vector<std::byte> bytes) {
    for (std::size_t count = 1 + below(4); count > 0 && !bytes.empty(); --count) mutate(bytes);
    return bytes;
  }

 private:
  void mutate(std::vector<std::byte>& bytes) {
    const auto at = [&](std::size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::size_t from = below(bytes.size());
    const std::size_t count = below(std::min<std::size_t>(bytes.size() - from, 200)) + 1;
    const std::vector<std::byte> piece(at(from), at(from + count));
    switch (below(7)) {
      case 0:
        bytes[from] ^= std::byte{1} << below(8);
        break;
      case 1:
        bytes[from] = static_cast<std::byte>(random_());
        break;
      case 2:  // numbers at which lengths and ranks go wrong
        for (std::size_t i = from; i < std::min(from + 4, bytes.size()); ++i)
          bytes[i] = below(2) == 0 ? std::byte{0xff} : std::byte{0};
        break;
      case 3:
        bytes.erase(at(from), at(from + count));
        break;
      case 4:
        bytes.resize(from);
        break;
      case 5:
        bytes.insert(at(below(bytes.size())), piece.begin(), piece.end());
        break;
      default:
        std::copy_n(piece.begin(), std::min(count, bytes.size() - below(bytes.size())), at(0));
    }
  }

  std::mt19937 random_;
};

TEST(RendezvousFuzz, TheRightConversationIsRight) {
  const auto unaltered = [](std::vector<std::byte> bytes) { return bytes; };
  EXPECT_FALSE(converse(Side::host, 7, unaltered));
  EXPECT_FALSE(converse(Side::joiner, 7, unaltered));
  const Conversation right = right_conversation();
  EXPECT_FALSE(feed_reader(Side::joiner, encoded(right.of_joiner), 7));
  EXPECT_FALSE(feed_reader(Side::host, encoded(right.of_host), 7));
  EXPECT_NO_THROW(feed_visit(bytes_from(right.of_host)));
}

/// One of the flights that `self` hears is altered, on its way through a stranger.
void alter_conversations(Side self, std::uint32_t flights) {
  std::uint32_t noticed = 0;
  for (std::uint32_t seed = 0; seed < kConversations; ++seed) {
    Mutator mutator(seed);
    const std::size_t piece = 1 + mutator.below(300);
    std::uint32_t flight = 0;
    const auto alter = [&](std::vector<std::byte> bytes) {
      return flight++ == seed % flights ? mutator.mutated(std::move(bytes)) : bytes;
    };
    EXPECT_NO_THROW(noticed += converse(self, piece, alter) ? 1 : 0) << "seed " << seed;
  }
  EXPECT_GT(noticed, kConversations / 10 * 9) << "the rest was not changed";
}

TEST(RendezvousFuzz, AHostHearsOnlyWhatItsJoinerSaid) { alter_conversations(Side::host, 3); }

TEST(RendezvousFuzz, AJoinerHearsOnlyWhatItsHostSaid) { alter_conversations(Side::joiner, 3); }

TEST(RendezvousFuzz, AHandshakeOfAStrangerProvesNothing) {
  const Channel joiner(Side::joiner, our_tls());
  const std::vector<std::byte> hello(joiner.output().begin(), joiner.output().end());
  for (std::uint32_t seed = 0; seed < kConversations; ++seed) {
    Mutator mutator(seed);
    const std::vector<std::byte> wrong = mutator.mutated(hello);
    const std::size_t piece = 1 + mutator.below(300);
    EXPECT_NO_THROW(feed_handshake(Side::host, wrong, piece)) << "seed " << seed;
    EXPECT_NO_THROW(feed_handshake(Side::joiner, wrong, piece)) << "seed " << seed;
  }
}

TEST(RendezvousFuzz, FramesOfAMemberThatBrokeAreCutOff) {
  const Conversation right = right_conversation();
  std::uint32_t noticed = 0;
  for (std::uint32_t seed = 0; seed < kCases; ++seed) {
    const Side from = seed % 2 == 0 ? Side::joiner : Side::host;
    const std::vector<std::byte> sound =
        encoded(from == Side::joiner ? right.of_joiner : right.of_host);
    Mutator mutator(seed);
    const std::vector<std::byte> wrong = mutator.mutated(sound);
    EXPECT_NO_THROW(noticed += feed_reader(from, wrong, 1 + mutator.below(300)) ? 1 : 0)
        << "seed " << seed;
  }
  EXPECT_GT(noticed, kCases / 4) << "the rest ended too early, or has other bodies";
}

TEST(RendezvousFuzz, AJoinerSurvivesAHostThatBroke) {
  const std::vector<std::byte> right = bytes_from(right_conversation().of_host);
  for (std::uint32_t seed = 0; seed < kCases; ++seed)
    EXPECT_NO_THROW(feed_visit(Mutator(seed).mutated(right))) << "seed " << seed;
}

TEST(RendezvousFuzz, AHostSurvivesJoinersThatBroke) {
  std::vector<Frame> frames;
  for (const Rank rank : {0u, 1u, kAnyRank, kAnyRank, 2u, 1u}) {
    frames.push_back(
        {FrameType::request_join, encode(JoinRequest{kMembers, rank, {}, "flock", {}, {}})});
    frames.push_back({FrameType::have, numbers({1})});
    frames.push_back({FrameType::have, numbers({2})});
    frames.push_back({FrameType::news, numbers({0})});  // leaves
  }
  for (std::uint32_t seed = 0; seed < kCases; ++seed) {
    std::vector<Frame> shuffled = frames;
    std::mt19937 random(seed);
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const std::vector<std::byte> right = bytes_from(shuffled);
    EXPECT_NO_THROW(feed_builder(right)) << "seed " << seed;
    EXPECT_NO_THROW(feed_builder(Mutator(seed).mutated(right))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace dunlin::rendezvous
