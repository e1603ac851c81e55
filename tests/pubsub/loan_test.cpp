#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pubsub/participants.hpp"

/// Sequences that are built in the ring.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

struct Image {
  std::uint32_t camera = 0;
  std::array<char, 3> format = {};
  std::vector<std::uint16_t> pixels = {};
  using TopicKey = KeyOf<&Image::camera>;
  friend bool operator==(const Image&, const Image&) = default;
};

class Camera {
 public:
  Camera() : all(1), topic(all[0], "images", {.ring_bytes = 1U << 16U}) {
    DataReaderQos everything;
    everything << Reliability::reliable() << History::keep_all();
    writer = {Publisher(all[0]), topic};
    reader = {Subscriber(all[0]), topic, everything};
    EXPECT_TRUE(all.until([&] { return writer->ready() && reader->ready(); }));
  }
  static Image image(std::uint32_t camera, std::size_t pixels) {
    Image made{.camera = camera, .format = {'r', 'a', 'w'}};
    made.pixels.resize(pixels);
    std::iota(made.pixels.begin(), made.pixels.end(), std::uint16_t{7});
    return made;
  }
  bool build(const Image& image) {
    const auto room =
        writer.loan({.camera = image.camera, .format = image.format}, image.pixels.size());
    if (room.data() == nullptr) return false;
    EXPECT_EQ(room.size(), image.pixels.size());
    std::ranges::copy(image.pixels, room.begin());
    return true;
  }
  std::vector<Image> take() {
    all.run_for(1'000'000);
    std::vector<Image> images;
    for (const auto& sample : reader.take()) images.push_back(sample.data());
    return images;
  }
  Participants all;
  Topic<Image> topic;
  DataWriter<Image> writer;
  DataReader<Image> reader;
};

TEST(SequenceLoan, GivesReadersWhatWriteWouldGiveThem) {
  Camera at;
  std::vector<Image> images;
  for (std::uint32_t pixels = 0; pixels < 6; ++pixels)
    images.push_back(Camera::image(pixels, pixels));
  images.push_back(Camera::image(1, 5'000));
  at.all.world.on(0, [&] {
    for (const Image& image : images) {
      ASSERT_TRUE(at.build(image));
      at.writer.publish();
    }
  });
  EXPECT_EQ(at.take(), images);
  EXPECT_NE(at.reader.lookup_instance({.camera = 5}), 0U);
}

TEST(SequenceLoan, IsTakenBackByALaterCall) {
  Camera at;
  const Image written = Camera::image(2, 3);
  at.all.world.on(0, [&] {
    ASSERT_TRUE(at.build(Camera::image(1, 4)));
    ASSERT_EQ(at.writer.write(written), WriteResult::written);
    at.writer.publish();
  });
  EXPECT_EQ(at.take(), std::vector<Image>{written});
}

TEST(SequenceLoan, IsNoneForWhatTheRingCannotTakeInPlace) {
  Camera at;
  const Image large = Camera::image(3, 20'000);
  at.all.world.on(0, [&] {
    EXPECT_FALSE(at.build(large));
    at.writer.publish();
    EXPECT_EQ(at.writer.write(large), WriteResult::written);
  });
  EXPECT_EQ(at.take(), std::vector<Image>{large});
}

}  // namespace
}  // namespace dunlin::test
