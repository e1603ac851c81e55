#include "fabric/mapping/observer.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace dunlin::mapping {
namespace {

namespace fs = std::filesystem;

std::optional<pid_t> process_of(const fs::path& directory) {
  const std::string name = directory.filename();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

/// Whether a link in /proc is what the kernel shows for a file in /dev/shm that never had a name.
bool is_nameless_segment(const fs::path& link) {
  std::error_code error;
  const std::string target = fs::read_symlink(link, error);
  return !error && target.starts_with("/dev/shm/#") && target.ends_with(" (deleted)");
}

Descriptor open_for_reading(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/// The directory's entries; none if it is gone or we may not read it.
std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  return found;
}

class Search {
 public:
  void look_into(const fs::path& process) {
    const std::optional<pid_t> pid = process_of(process);
    if (!pid) return;
    for (const fs::path& link : entries(process / "fd"))
      if (is_nameless_segment(link)) look_at(*pid, link);
  }
  std::vector<Sighting> take() { return std::move(found_); }

 private:
  void look_at(pid_t pid, const fs::path& link) {
    const Descriptor file = open_for_reading(link);
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) return;
    try {
      MappingInfo info = read_mapping_info(file);
      // Peers have a segment's descriptor, too, for a moment; forked children have it for longer.
      // So the process that the header names comes first; in another name space of processes it is
      // nobody's.
      const auto [seen, is_new] = seen_.insert({{status.st_dev, status.st_ino}, found_.size()});
      const bool is_owner = info.owner_pid == static_cast<std::uint32_t>(pid);
      if (is_new)
        found_.push_back({std::move(info), pid, link});
      else if (is_owner)
        found_[seen->second] = {std::move(info), pid, link};
    } catch (const Error&) {
      // The file is no segment of Dunlin.
    }
  }

  std::map<std::pair<dev_t, ino_t>, std::size_t> seen_;  // index in found_
  std::vector<Sighting> found_;
};

}  // namespace

std::vector<Sighting> find_mappings() {
  Search search;
  for (const fs::path& process : entries("/proc")) search.look_into(process);
  std::vector<Sighting> found = search.take();
  std::sort(found.begin(), found.end(), [](const Sighting& a, const Sighting& b) {
    return std::tie(a.info.group, a.info.owner_rank, a.pid, a.info.kind, a.info.region,
                    a.info.generation) < std::tie(b.info.group, b.info.owner_rank, b.pid,
                                                  b.info.kind, b.info.region, b.info.generation);
  });
  return found;
}

ObservedMapping::ObservedMapping(const Sighting& sighting) {
  const Descriptor file = open_for_reading(sighting.path);
  if (!file)
    throw Error("the segment of process " + std::to_string(sighting.pid) + " cannot be opened: " +
                error_text(errno) + ". Has it ended, or does it belong to another user?");
  info_ = read_mapping_info(file);
  if (info_.incarnation != sighting.info.incarnation || info_.region != sighting.info.region ||
      info_.generation != sighting.info.generation)
    throw Error("the segment of process " + std::to_string(sighting.pid) +
                " is gone, and another one is in its place: look again");
  mapping_ = std::make_unique<Mapping>(file, payload_offset(info_.layout_text.size()), info_.bytes,
                                       PROT_READ);
}

}  // namespace dunlin::mapping
