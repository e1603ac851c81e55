#include "process/program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "process/pipe.hpp"

namespace dunlin::process {
namespace {

constexpr std::chrono::milliseconds kGrace{3'000};

/// A nameless file that holds the input: unlike a pipe it cannot fill up.
Descriptor file_with(const std::string& input) {
  Descriptor file(checked(memfd_create("dunlin-input", MFD_CLOEXEC), "memfd_create"));
  write_all(file, input);
  checked(static_cast<int>(lseek(file.get(), 0, SEEK_SET)), "lseek");
  return file;
}

/// Becomes the program, or returns why it does not. A launcher ends its own children when it is
/// asked to, and cannot when it is killed: so SIGTERM is what it gets when the parent dies.
std::string become(const Program& program, const Descriptor& input, const Descriptor& output) {
  std::vector<char*> arguments;
  for (const std::string& word : program.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);
  try {
    if (program.prepare) program.prepare();
    checked(dup2(input.get(), 0), "dup2");
    checked(dup2(output.get(), 1), "dup2");
    checked(dup2(output.get(), 2), "dup2");
  } catch (const std::exception& error) {
    return error.what();
  }
  execvp(arguments[0], arguments.data());
  return error_text(errno);
}

}  // namespace

Outcome run(const Program& program) {
  const std::string& name = program.command.at(0);
  const Descriptor input = file_with(program.input);
  Pipe output = make_pipe();
  Pipe fault = make_pipe();  // closed without a word when the program begins
  Child child([&] {
    write_all(fault.in, become(program, input, output.in));
    return 127;
  });
  setpgid(child.pid(), child.pid());  // whichever of the two is first
  output.in.close();
  fault.in.close();
  std::string text;
  static_cast<void>(read_all(fault.out, text));
  if (!text.empty()) throw Error("cannot start " + name + ": " + text);
  if (!read_all(output.out, text, program.timeout)) {
    kill(-child.pid(), SIGTERM);
    if (!read_all(output.out, text, kGrace)) kill(-child.pid(), SIGKILL);
    throw Error(name + " did not finish within " + std::to_string(program.timeout.count()) +
                " ms and was ended");
  }
  const Status status = child.wait();
  return {status, text, child.peak_bytes()};
}

std::filesystem::path folder_of_this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

bool program_exists(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace dunlin::process
