// Resource monitoring: each process puts the load of its host and of itself, as /proc has it, into
// a segment in its own memory. The others read it there: a stopped process answers nothing, and is
// read all the same. Start so many, with ranks from 0; `burn` keeps a processor busy:
//
//     ./monitoring rack7 3 0 & ./monitoring rack7 3 1 burn & ./monitoring rack7 3 2
//
// A process prints a line for each member when it reads a line, and ends at the end of its input.

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

constexpr std::uint32_t kIntervalMs = 20;

struct Load {
  std::uint64_t samples = 0;
  std::uint64_t process = 0;
  std::uint64_t cpu_ms = 0;  // of the process
  std::uint64_t resident_kb = 0;
  double host_load = 0;  // waiting for a processor, on average of a minute
  std::uint64_t host_free_kb = 0;
};

/// The number of the line that begins so.
std::uint64_t figure(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return 0;
}

/// User and system time; they follow the name of the program, which may have spaces.
std::uint64_t own_cpu_ms() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text, ')');
  for (int i = 3; i < 14; ++i) file >> text;
  std::uint64_t user = 0, system = 0;
  file >> user >> system;
  return (user + system) * 1000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
}

void look(Load& load) {
  ++load.samples;
  load.process = static_cast<std::uint64_t>(getpid());
  load.cpu_ms = own_cpu_ms();
  load.resident_kb = figure("/proc/self/status", "VmRSS:");
  std::ifstream("/proc/loadavg") >> load.host_load;
  load.host_free_kb = figure("/proc/meminfo", "MemAvailable:");
}

void print(Member& member, const std::vector<dunlin::Key>& keys) {
  for (dunlin::Rank rank = 0; rank < keys.size(); ++rank) {
    Load load;
    auto get = member.space.get(keys[rank], dunlin::bytes_of(load));
    std::cout << "member " << rank << ": ";
    if (get.outcome().ok()) {
      std::cout << "process " << load.process << ", sample " << load.samples << ", cpu "
                << load.cpu_ms << " ms, resident " << load.resident_kb << " KB, host load "
                << load.host_load << ", free " << load.host_free_kb << " KB\n";
    } else {
      std::cout << dunlin::remote::describe(get.status()) << '\n';
    }
  }
  std::cout << std::flush;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw dunlin::Error("usage: monitoring GROUP MEMBERS RANK [burn]");
  const auto members = static_cast<std::uint32_t>(std::atoi(argv[2]));
  Member member(argv[1], members, static_cast<std::uint32_t>(std::atoi(argv[3])));
  const bool burns = argc > 4;

  Load load;
  const dunlin::Key own = member.allocate({.bytes = sizeof load,
                                           .coherence = dunlin::Coherence::write,
                                           .placement = dunlin::Placement::here(),
                                           .name = std::string("load/") + argv[3]});
  std::vector<dunlin::Key> keys;
  for (std::uint32_t rank = 0; rank < members; ++rank)
    keys.push_back(member.find("load/" + std::to_string(rank)));

  TypedLines input;
  while (!input.over()) {
    look(load);
    auto put = member.space.put(own, dunlin::bytes_of(load));
    if (!put.outcome().ok()) {
      if (member.progress.stopped()) break;  // too few are left
      throw dunlin::Error(put.describe());
    }
    if (burns) {
      for (std::uint64_t i = 0; i < 2'000'000; ++i) asm volatile("" : : : "memory");
      member.space.poll();
    } else {
      member.rest(kIntervalMs);
    }
    if (input.front() == nullptr) continue;
    input.pop();
    print(member, keys);
  }
  member.leave();
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
