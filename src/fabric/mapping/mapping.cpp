#include "fabric/mapping/mapping.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace dunlin::mapping {
namespace {

constexpr const char* kDirectory = "/dev/shm";
constexpr std::uint64_t kReserveBytes = std::uint64_t{4} << 20;
/// Small mappings are mapped in advance, so that the first operations need not fault. Larger ones
/// are not: all members of a group map all segments, and what grows with the group in them would
/// cost its cube.
constexpr std::uint64_t kPopulateUpToBytes = std::uint64_t{64} << 10;

/// The live mappings of this process by file. Members that are threads of one process share
/// mappings through it, so that a race between them is a race on one address for any tool.
/// A forked child maps anew what it is sent: its parent's mappings are hidden from it.
class MappingRegistry final : private ForkAware {
 public:
  std::shared_ptr<Mapping> find_or_map(const Descriptor& file, std::uint64_t offset,
                                       std::uint64_t bytes) {
    struct stat status {};
    checked(fstat(file.get(), &status), "reading the state of a shared memory segment");
    const File key{forks_, status.st_dev, status.st_ino};
    if (auto known = find(key, bytes)) return known;
    auto made = std::make_shared<Mapping>(file, offset, bytes, PROT_READ | PROT_WRITE);
    // Another thread may have been faster. Then this one's mapping goes, and without the lock.
    if (auto known = find(key, bytes, made)) return known;
    return made;
  }

 private:
  using File = std::tuple<std::uint64_t, dev_t, ino_t>;

  void in_child() noexcept override { ++forks_; }
  /// The live mapping of that file; null: there is none, and `made` becomes it.
  std::shared_ptr<Mapping> find(const File& file, std::uint64_t bytes,
                                const std::shared_ptr<Mapping>& made = nullptr) {
    std::shared_ptr<Mapping> known;
    const std::scoped_lock lock(mutex_);
    std::erase_if(mappings_, [](const auto& entry) { return entry.second.expired(); });
    const auto found = mappings_.find(file);
    if (found != mappings_.end()) known = found->second.lock();
    if (known && known->memory().size() == bytes) return known;
    if (made) mappings_.insert_or_assign(file, made);
    return nullptr;
  }

  ForkMutex mutex_;
  std::uint64_t forks_ = 0;  // forks that led to this process
  std::map<File, std::weak_ptr<Mapping>> mappings_;
};

MappingRegistry& mappings_of_this_process() {
  static MappingRegistry registry;
  return registry;
}

template <std::size_t Size>
void put_name(std::array<char, Size>& field, const std::string& name) {
  std::copy_n(name.begin(), std::min(name.size(), Size - 1), field.begin());
}

MappingHeader header_of(const MappingInfo& info) {
  MappingHeader header{};
  header.magic = kMappingMagic;
  header.version = kMappingVersion;
  header.payload_offset = payload_offset(info.layout_text.size());
  header.kind = info.kind;
  header.owner_pid = info.owner_pid;
  header.owner_uid = info.owner_uid;
  header.owner_rank = info.owner_rank;
  header.members = info.members;
  header.layout_text_bytes = static_cast<std::uint32_t>(info.layout_text.size());
  header.incarnation = info.incarnation;
  header.generation = info.generation;
  header.layout_hash = info.layout_hash;
  header.payload_bytes = info.bytes;
  put_name(header.fabric, info.fabric);
  put_name(header.group, info.group);
  put_name(header.member, info.member);
  put_name(header.region, info.region);
  return header;
}

MappingInfo info_of(const MappingHeader& header, std::string layout_text) {
  return {.kind = header.kind,
          .owner_pid = header.owner_pid,
          .owner_uid = header.owner_uid,
          .owner_rank = header.owner_rank,
          .members = header.members,
          .incarnation = header.incarnation,
          .generation = header.generation,
          .layout_hash = header.layout_hash,
          .bytes = header.payload_bytes,
          .fabric = header.fabric.data(),
          .group = header.group.data(),
          .member = header.member.data(),
          .region = header.region.data(),
          .layout_text = std::move(layout_text)};
}

std::string describe(const MappingInfo& info) {
  const std::string of = "of group '" + info.group + "'";
  if (info.kind == MappingKind::base) return "the base segment " + of;
  if (info.kind == MappingKind::ring) return "a message ring " + of;
  return "region '" + info.region + "' " + of;
}

[[noreturn]] void throw_no_space(const MappingInfo& info, std::uint64_t needed) {
  struct statvfs space {};
  std::string free = "an unknown number";
  if (statvfs(kDirectory, &space) == 0) free = std::to_string(space.f_bavail * space.f_frsize);
  throw Error("not enough shared memory for " + describe(info) + ": " + std::to_string(needed) +
              " bytes are needed and " + free +
              " are free in /dev/shm. Ask for less, or enlarge it, for example with 'mount -o "
              "remount,size=4G /dev/shm' (in a container: --shm-size)");
}

/// Reserves memory in several parts, because a signal undoes what one call has reserved so far:
/// otherwise a profiler's timer would keep a large segment from ever being done. A segment that
/// cannot fit is not even begun.
int reserve_in_parts(const Descriptor& file, std::uint64_t bytes) {
  struct statvfs space {};
  const bool is_limited = fstatvfs(file.get(), &space) == 0 && space.f_blocks != 0;
  if (is_limited && space.f_bavail * space.f_frsize < bytes) return ENOSPC;
  for (std::uint64_t done = 0; done < bytes; done += kReserveBytes) {
    const auto part = static_cast<off_t>(std::min(kReserveBytes, bytes - done));
    int error = EINTR;
    while (error == EINTR) error = posix_fallocate(file.get(), static_cast<off_t>(done), part);
    if (error != 0) return error;
  }
  return 0;
}

void reserve(const Descriptor& file, const MappingInfo& info, std::uint64_t bytes) {
  const int error = reserve_in_parts(file, bytes);
  if (error != 0) static_cast<void>(!ftruncate(file.get(), 0));  // counts as free then
  if (error == ENOSPC || error == ENOMEM || error == EFBIG) throw_no_space(info, bytes);
  if (error != 0)
    throw Error("reserving " + std::to_string(bytes) + " bytes of /dev/shm for " + describe(info) +
                " failed: " + error_text(error));
}

void write_all(const Descriptor& file, const void* from, std::size_t bytes, std::size_t offset) {
  if (pwrite(file.get(), from, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
    throw Error("writing a segment's header failed: " + error_text(errno));
}

bool read_all(const Descriptor& file, void* to, std::size_t bytes, std::size_t offset) {
  return pread(file.get(), to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

Descriptor open_nameless() {
  Descriptor file(open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  throw Error(std::string("cannot make a shared memory segment: /dev/shm: ") + error_text(errno) +
              ". It must be a writable tmpfs");
}

void give_access(const Descriptor& file, gid_t group) {
  const bool given =
      fchown(file.get(), static_cast<uid_t>(-1), group) == 0 && fchmod(file.get(), 0660) == 0;
  if (given) return;
  throw Error("cannot share memory with the Unix group " + std::to_string(group) + ": " +
              error_text(errno) + ". This process must be a member of it");
}

}  // namespace

Mapping::Mapping(const Descriptor& file, std::uint64_t offset, std::uint64_t bytes,
                 int protection) {
  const int populate = bytes <= kPopulateUpToBytes ? MAP_POPULATE : 0;
  void* at = mmap(nullptr, bytes, protection, MAP_SHARED | populate, file.get(),
                  static_cast<off_t>(offset));
  if (at == MAP_FAILED)
    throw Error("mapping a shared memory segment of " + std::to_string(bytes) +
                " bytes failed: " + error_text(errno));
  memory_ = {static_cast<std::byte*>(at), bytes};
  in_parent();
}

/// What another thread maps at that place afterwards is no memory of this object.
Mapping::~Mapping() {
  pass_by_forks();
  munmap(memory_.data(), memory_.size());
}

void Mapping::before_fork() noexcept { madvise(memory_.data(), memory_.size(), MADV_DOFORK); }
void Mapping::in_parent() noexcept { madvise(memory_.data(), memory_.size(), MADV_DONTFORK); }
void Mapping::in_child() noexcept {
  const void* const zeros = mmap(memory_.data(), memory_.size(), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (zeros == MAP_FAILED) munmap(memory_.data(), memory_.size());  // a crash rather than a write
}

OwnMapping create_mapping(const MappingInfo& info, std::optional<gid_t> access_group) {
  OwnMapping segment{open_nameless(), nullptr};
  if (access_group) give_access(segment.file, *access_group);
  const MappingHeader header = header_of(info);
  reserve(segment.file, info, header.payload_offset + info.bytes);
  write_all(segment.file, &header, sizeof header, 0);
  if (!info.layout_text.empty())
    write_all(segment.file, info.layout_text.data(), info.layout_text.size(), sizeof header);
  segment.mapping =
      mappings_of_this_process().find_or_map(segment.file, header.payload_offset, info.bytes);
  return segment;
}

MappingInfo read_mapping_info(const Descriptor& file) {
  struct stat status {};
  checked(fstat(file.get(), &status), "reading the state of a shared memory segment");
  MappingHeader header{};
  if (!S_ISREG(status.st_mode) || !read_all(file, &header, sizeof header, 0))
    throw Error("not a segment: it has no header");
  const std::string fault = fault_of(header, static_cast<std::uint64_t>(status.st_size));
  if (!fault.empty()) throw Error("not a usable segment: " + fault);
  std::string layout_text(header.layout_text_bytes, '\0');
  if (!read_all(file, layout_text.data(), layout_text.size(), sizeof header))
    throw Error("not a usable segment: its layout text cannot be read");
  return info_of(header, std::move(layout_text));
}

PeerMapping map_peer(const Descriptor& file) {
  MappingInfo info = read_mapping_info(file);
  auto mapping = mappings_of_this_process().find_or_map(
      file, payload_offset(info.layout_text.size()), info.bytes);
  return {std::move(info), std::move(mapping)};
}

}  // namespace dunlin::mapping
