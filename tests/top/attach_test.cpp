#include <algorithm>
#include <array>
#include <csignal>
#include <initializer_list>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <dunlin/dunlin.hpp>

#include "command.hpp"
#include "support/process.hpp"
#include "top/observe.hpp"
#include "top/process.hpp"

namespace dunlin {
namespace {

using nlohmann::json;
using test::Parent;
using test::Process;
using top::observe_checked;
using top::read_process;

struct LoadRow {
  Cell<int> step;
  Cell<std::array<char, 12>> city;
};

app::Status run_top(std::initializer_list<std::string> words) {
  std::vector<const char*> arguments = {"dunlin", "top"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return app::run(static_cast<int>(arguments.size()), arguments.data());
}

int fresh_number() {
  static int count = 0;
  return count++;
}

/// Three processes whose table `load` is complete everywhere when the constructor is done.
class RunningGroup {
 public:
  RunningGroup() {
    for (Rank rank = 0; rank < 3; ++rank) {
      members_.emplace_back([this, rank](Parent& parent) { return run_member(parent, rank); });
    }
    for (Process& member : members_) EXPECT_EQ(member.receive_line(), "complete");
  }
  Process& operator[](std::size_t i) { return members_[i]; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// What `dunlin top --once --json` says of it.
  [[nodiscard]] json look() const {
    testing::internal::CaptureStdout();
    const app::Status status = run_top({"--once", "--json", "--interval", "0.01", name_});
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(status, app::Status::ok);
    return json::parse(text).at("groups").at(0);
  }

 private:
  int run_member(Parent& parent, Rank rank) const {
    const auto fabric = join({.group = name_, .members = 3, .rank = rank});
    Table<LoadRow> table(fabric, {.name = "load"});
    bool complete = false;
    table.when(all(&LoadRow::step) >= 1, "all there").transition([&] {
      parent.send_line("complete");
      complete = true;
    });
    table.mine().step = 10 + static_cast<int>(rank);
    table.mine().city = std::array<char, 12>{'c', 'i', 't', 'y', static_cast<char>('0' + rank)};
    table.push();
    run(table);
    return complete ? 0 : 1;
  }

  std::string name_ = "test-top-" + std::to_string(getpid()) + "-" + std::to_string(fresh_number());
  std::vector<Process> members_;
};

void wait_for_state(pid_t pid, char state) {
  for (;;) {
    const auto process = read_process(pid);
    ASSERT_TRUE(process);
    if (process->state == state) return;
  }
}

TEST(TopAttach, ShowsARunningGroup) {
  RunningGroup group;
  const json seen = group.look();
  EXPECT_EQ(seen["name"], group.name());
  EXPECT_EQ(seen["size"], 3);
  EXPECT_EQ(seen["absent_ranks"], json::array());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen["members"][i]["pid"], group[i].pid());
    EXPECT_TRUE(seen["members"][i]["cpu_percent"].is_number());
  }
  ASSERT_EQ(seen["tables"].size(), 1U);
  const json& table = seen["tables"][0];
  EXPECT_EQ(table["name"], "load");
  EXPECT_EQ(table["columns"][0]["name"], "step");
  for (std::size_t i = 0; i < 3; ++i) {
    const json& row = table["rows"][i];
    EXPECT_EQ(row["values"]["step"], 10 + i);
    EXPECT_EQ(row["values"]["city"], "city" + std::to_string(i));
    EXPECT_EQ(row["read_from_rank"], i);
    EXPECT_GE(row["age_ms"], 0);
    EXPECT_TRUE(row["pushes_per_s"].is_number());
    for (const json& seen_by : row["seen_by"]) EXPECT_EQ(seen_by["state"], "connected");
    const json& predicate = table["nodes"][i]["predicates"].at(0);
    EXPECT_EQ(predicate["name"], "all there");
    EXPECT_EQ(predicate["kind"], "transition");
    EXPECT_EQ(predicate["firings"], 1);
    EXPECT_GE(predicate["evaluations"], 1);
    EXPECT_TRUE(predicate["evaluations_per_s"].is_number());
  }
}

TEST(TopAttach, ReadsAStoppedProcessAsWellAsARunningOne) {
  RunningGroup group;
  group[1].signal(SIGSTOP);
  wait_for_state(group[1].pid(), 'T');
  const json seen = group.look();
  EXPECT_EQ(seen["members"][1]["process_state"], "T");
  EXPECT_EQ(seen["tables"][0]["rows"][1]["values"]["step"], 11);
  EXPECT_EQ(seen["tables"][0]["rows"][1]["read_from_rank"], 1);
}

TEST(TopAttach, ShowsTheRowOfAKilledProcessAsTheOthersHaveIt) {
  RunningGroup group;
  group[2].kill();
  json row;
  do {
    row = group.look()["tables"][0]["rows"][2];
  } while (row["seen_by"][0]["state"] != "failed" || row["seen_by"][1]["state"] != "failed");
  EXPECT_EQ(row["values"]["step"], 12);
  EXPECT_EQ(row["read_from_rank"], 0);
  EXPECT_EQ(row["age_ms"], nullptr);
  EXPECT_GE(row["seen_by"][0]["since_ms_ago"], 0);
  EXPECT_EQ(group.look()["absent_ranks"], json::array({2}));
}

TEST(TopAttach, NamesTheGroupsThatThereAreIfThatOneIsNot) {
  RunningGroup group;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_top({"--once", "no-such-group"}), app::Status::bad_input);
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_NE(error.find("no group 'no-such-group'"), std::string::npos) << error;
  EXPECT_NE(error.find("'" + group.name() + "'"), std::string::npos) << error;
}

TEST(TopAttach, TellsAUserWhoMayNotReadAGroupWhoMay) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  RunningGroup group;
  Process other([&](Parent& parent) {
    constexpr uid_t kNobody = 65534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return 2;
    try {
      (void)observe_checked({.group = group.name()});
    } catch (const Error& error) {
      parent.send_line(error.what());
    }
    return 0;
  });
  EXPECT_EQ(other.receive_line(), "top: 3 members of group '" + group.name() +
                                      "' (user root) cannot be " +
                                      "read: run this as user root, or with sudo.");
  EXPECT_EQ(other.exit_code(), 0);
}

/// Reads until `text` has come.
std::string read_until(int descriptor, const std::string& text) {
  std::string all;
  std::array<char, 4096> piece;
  while (all.find(text) == std::string::npos) {
    const ssize_t bytes = ::read(descriptor, piece.data(), piece.size());
    if (bytes <= 0) return all + "<end>";
    all.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  return all;
}

TEST(TopAttach, EndsItsStreamWhenNobodyReads) {
  RunningGroup group;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Process top([&](Parent&) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    return static_cast<int>(run_top({"--json", "--interval", "0.1", group.name()}));
  });
  close(ends[1]);
  const std::string text = read_until(ends[0], "\n");
  EXPECT_EQ(json::parse(text.substr(0, text.find('\n')))["groups"][0]["name"], group.name());
  close(ends[0]);
  const int code = top.exit_code();
  EXPECT_TRUE(code == 0 || code == -SIGPIPE) << code;
}

TEST(TopAttach, LeavesTheTerminalAsItWas) {
  RunningGroup group;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const std::string name = ptsname(terminal);
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  const int other_end = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  Process top([&](Parent&) {
    setsid();
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) dup2(other_end, standard);
    return static_cast<int>(run_top({group.name()}));
  });
  const std::string shown = read_until(terminal, "q quit");
  EXPECT_EQ(shown.find("\x1b[?1049h"), 0U);
  EXPECT_NE(shown.find("group " + group.name()), std::string::npos);
  termios during{};
  EXPECT_EQ(tcgetattr(other_end, &during), 0);
  EXPECT_EQ(during.c_lflag & ECHO, 0U);
  ASSERT_EQ(::write(terminal, "q", 1), 1);
  EXPECT_NE(read_until(terminal, "\x1b[?1049l").find("\x1b[?25h"), std::string::npos);
  EXPECT_EQ(top.exit_code(), 0);
  termios after{};
  EXPECT_EQ(tcgetattr(other_end, &after), 0);
  EXPECT_NE(after.c_lflag & ECHO, 0U);
  close(other_end);
  close(terminal);
}

}  // namespace
}  // namespace dunlin
