#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "command.hpp"
#include "support/process.hpp"

/// `dunlin bench`, which starts another program. Beside these tests there is none.
namespace dunlin {
namespace {

class BenchCommand : public testing::Test {
 protected:
  BenchCommand() { std::filesystem::create_directory(folder_); }
  ~BenchCommand() override { std::filesystem::remove_all(folder_); }

  /// A stand-in that prints its arguments.
  void make_program() const {
    const std::string program = folder_ + "/dunlin-bench";
    std::ofstream(program) << "#!/bin/sh\nprintf '[%s]\\n' \"$@\"\nexit 7\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  /// Where PATH is the folder and nothing else.
  [[nodiscard]] test::Process bench(std::vector<const char*> words) const {
    words.insert(words.begin(), {"dunlin", "bench"});
    return test::Process([this, words](test::Parent& parent) {
      setenv("PATH", folder_.c_str(), 1);
      for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), stream);
      return static_cast<int>(app::run(static_cast<int>(words.size()), words.data()));
    });
  }

  const std::string folder_ = testing::TempDir() + "dunlin-bench-" + std::to_string(getpid());
};

TEST_F(BenchCommand, StartsTheProgramWithAllArguments) {
  make_program();
  test::Process process = bench({"multicast", "--only", "a b", "--", "--fabric=shm", ""});
  EXPECT_EQ(process.receive_all_lines(),
            "[multicast]\n[--only]\n[a b]\n[--]\n[--fabric=shm]\n[]\n");
  EXPECT_EQ(process.exit_code(), 7);
}

TEST_F(BenchCommand, LeavesHelpAndVersionToTheProgram) {
  make_program();
  test::Process process = bench({"--help", "--version", "-x", "table", "--help"});
  EXPECT_EQ(process.receive_all_lines(), "[--help]\n[--version]\n[-x]\n[table]\n[--help]\n");
  EXPECT_EQ(process.exit_code(), 7);
}

TEST_F(BenchCommand, SaysWhatIsMissing) {
  test::Process process = bench({"table"});
  const std::string said = process.receive_all_lines();
  EXPECT_EQ(said.rfind("dunlin: there is no dunlin-bench, neither beside this program (", 0), 0U)
      << said;
  EXPECT_NE(said.find("`./run build` builds it"), std::string::npos) << said;
  EXPECT_EQ(process.exit_code(), static_cast<int>(app::Status::could_not_run));
}

}  // namespace
}  // namespace dunlin
