#include "multicast/input.hpp"

#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "support/own_directory.hpp"

/// The lines that `dunlin multicast` sends.
namespace {

using dunlin::app::cast::Input;

/// Standard input is a file with this text, until it goes.
class Given {
 public:
  explicit Given(const std::string& text) : before_(dup(STDIN_FILENO)) {
    const std::string path = directory_ / "text";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(lseek(file, 0, SEEK_SET), 0);
    EXPECT_EQ(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
  }
  ~Given() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

 private:
  dunlin::test::OwnDirectory directory_;
  int before_;
};

std::string next(Input& input) {
  const std::string* line = nullptr;
  while (line == nullptr && !input.over()) line = input.front();
  if (line == nullptr) return "over";
  std::string text = *line;
  input.pop();
  return text;
}

TEST(Input, HasTheLinesOneByOneAlsoTheLastWithoutAnEnd) {
  const std::string large(3'000'000, 'x');
  const Given given("one\n\n" + large + "\n\x01\xff\nlast");
  Input input;
  for (const std::string& line : {std::string("one"), std::string(), large, std::string("\x01\xff"),
                                  std::string("last"), std::string("over")})
    EXPECT_EQ(next(input), line);
}

/// Whoever reads polls nothing.
TEST(Input, ReadsALongLineInPieces) {
  const Given given(std::string(5'000'000, 'x') + "\n");
  Input input;
  EXPECT_EQ(input.front(), nullptr);
  EXPECT_LE(lseek(STDIN_FILENO, 0, SEEK_CUR), 1 << 20);
  EXPECT_EQ(next(input).size(), 5'000'000U);
}

TEST(Input, RefusesALineThatNoMessageCanHold) {
  const Given given("short\n" + std::string(2'000'000, 'x'));
  Input input(1'000);
  EXPECT_EQ(next(input), "short");
  EXPECT_THROW((void)next(input), dunlin::Error);
}

}  // namespace
