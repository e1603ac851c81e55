#include "log/simulated_disk.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric.hpp>

namespace dunlin::log {
namespace {

void put(std::vector<std::byte>& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  file.resize(std::max<std::size_t>(file.size(), offset + bytes.size()));
  std::ranges::copy(bytes, file.begin() + static_cast<std::ptrdiff_t>(offset));
}

[[noreturn]] void crashed() { throw Error("the simulated machine has crashed"); }

}  // namespace

void SimulatedDisk::apply(std::vector<std::byte>& file, const Change& change) {
  if (change.truncates) {
    file.resize(static_cast<std::size_t>(change.offset));
  } else {
    put(file, change.offset, change.bytes);
  }
}

class SimulatedDisk::OpenFile final : public File {
 public:
  OpenFile(SimulatedDisk& disk, std::shared_ptr<Inode> inode, std::string path)
      : disk_(disk), inode_(std::move(inode)), path_(std::move(path)), life_(disk.life_) {}

  std::uint64_t bytes() override { return inode_->now.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) override {
    disk_.expect_alive(life_);
    const std::vector<std::byte>& now = inode_->now;
    if (offset >= now.size()) return 0;
    const std::size_t bytes = std::min<std::size_t>(into.size(), now.size() - offset);
    std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(offset), bytes, into.begin());
    return bytes;
  }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    disk_.expect_alive(life_);
    const bool last = disk_.count();
    const std::uint64_t end = offset + from.size();
    const std::uint64_t more = end - std::min<std::uint64_t>(end, inode_->now.size());
    const std::uint64_t room = disk_.room_left();
    if (more > room) from = from.first(static_cast<std::size_t>(from.size() - (more - room)));
    put(inode_->now, offset, from);
    inode_->pending.push_back({offset, {from.begin(), from.end()}, false});
    if (last) crashed();
    if (more > room)
      throw Error("'" + path_ + "': writing " + std::to_string(more - room) + " bytes at offset " +
                  std::to_string(offset + from.size()) + " failed: No space left on device");
  }
  void truncate(std::uint64_t bytes) override {
    disk_.expect_alive(life_);
    const bool last = disk_.count();
    inode_->now.resize(static_cast<std::size_t>(bytes));
    inode_->pending.push_back({bytes, {}, true});
    if (last) crashed();
  }
  void sync() override {
    disk_.expect_alive(life_);
    if (disk_.count()) crashed();
    const std::vector<Change> pending = std::exchange(inode_->pending, {});
    if (std::exchange(disk_.fail_sync_, false))
      throw Error("'" + path_ + "': syncing it to the disk (fdatasync) failed: Input/output error");
    for (const Change& change : pending) apply(inode_->synced, change);
  }

 private:
  SimulatedDisk& disk_;
  std::shared_ptr<Inode> inode_;
  std::string path_;
  std::uint64_t life_;
};

class SimulatedDisk::OpenDirectory final : public Directory {
 public:
  OpenDirectory(SimulatedDisk& disk, std::string path)
      : disk_(disk), path_(std::move(path)), life_(disk.life_) {
    Folder& folder = disk_.folders_[path_];
    if (folder.open) throw Error("'" + path_ + "' is in use by another log");
    folder.open = true;
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  ~OpenDirectory() override {
    if (disk_.life_ == life_) folder().open = false;
  }

  std::string path() const override { return path_; }
  std::uint64_t draw_salt() override { return ++disk_.salts_ * 0x9E37'79B9'7F4A'7C15; }
  std::vector<std::string> names() override { return disk_.names(path_); }
  std::unique_ptr<File> open(const std::string& name) override {
    disk_.expect_alive(life_);
    const auto found = folder().now.find(name);
    if (found == folder().now.end())
      throw Error("'" + path_ + "/" + name + "': opening it failed: No such file or directory");
    return std::make_unique<OpenFile>(disk_, found->second, path_ + "/" + name);
  }
  std::unique_ptr<File> create(const std::string& name) override {
    change([&](Entries& now) { now[name] = std::make_shared<Inode>(); });
    return open(name);
  }
  void rename(const std::string& from, const std::string& to) override {
    change([&](Entries& now) {
      now[to] = now.at(from);
      now.erase(from);
    });
  }
  void remove(const std::string& name) override {
    change([&](Entries& now) { now.erase(name); });
  }
  void sync() override {
    disk_.expect_alive(life_);
    if (disk_.count()) crashed();
    folder().pending.clear();
  }

 private:
  Folder& folder() { return disk_.folders_[path_]; }
  template <class Do>
  void change(Do how) {
    disk_.expect_alive(life_);
    const bool last = disk_.count();
    folder().pending.push_back(folder().now);
    how(folder().now);
    if (last) crashed();
  }

  SimulatedDisk& disk_;
  std::string path_;
  std::uint64_t life_;
};

/// The job runs in start(), or when its time is over, as drawn: so a crash may find it done or not.
class SimulatedDisk::LateWorker final : public Worker {
 public:
  LateWorker(SimulatedDisk& disk, std::function<void()> job) : disk_(disk), job_(std::move(job)) {}

  void start() override {
    open_ = true;
    if (fabric_ != nullptr) {
      const std::uint64_t range = disk_.most_latency_ns_ - disk_.least_latency_ns_ + 1;
      due_ns_ = fabric_->now_ns() + disk_.least_latency_ns_ + disk_.draw(range);
      fabric_->wake_at(due_ns_);
    }
    if (fabric_ == nullptr || disk_.draw(2) == 0) do_it();
  }
  bool idle() override {
    if (fabric_ != nullptr && fabric_->now_ns() < due_ns_) {
      fabric_->wake_at(due_ns_);
      return false;
    }
    do_it();
    return true;
  }
  void wait() override {
    do_it();
    due_ns_ = 0;
  }
  void wake(Fabric* fabric) override { fabric_ = fabric; }

 private:
  void do_it() {
    if (std::exchange(open_, false)) job_();
  }

  SimulatedDisk& disk_;
  std::function<void()> job_;
  Fabric* fabric_ = nullptr;
  std::uint64_t due_ns_ = 0;
  bool open_ = false;
};

SimulatedDisk::SimulatedDisk(std::uint64_t seed, std::size_t sector_bytes)
    : random_(seed), sector_bytes_(sector_bytes) {}
SimulatedDisk::~SimulatedDisk() = default;

std::unique_ptr<Directory> SimulatedDisk::open(const std::string& path) {
  if (stopped()) crashed();
  return std::make_unique<OpenDirectory>(*this, path);
}
std::unique_ptr<Worker> SimulatedDisk::hire(std::function<void()> job) {
  return std::make_unique<LateWorker>(*this, std::move(job));
}
void SimulatedDisk::latency(std::uint64_t least_ns, std::uint64_t most_ns) noexcept {
  least_latency_ns_ = least_ns;
  most_latency_ns_ = most_ns;
}

bool SimulatedDisk::count() {
  ++operations_;
  return left_ && --*left_ == 0;
}
void SimulatedDisk::expect_alive(std::uint64_t life) const {
  if (stopped() || life != life_) crashed();
}

void SimulatedDisk::mend() noexcept {
  capacity_ = UINT64_MAX;
  fail_sync_ = false;
  if (!stopped()) left_.reset();
}

std::uint64_t SimulatedDisk::used() const noexcept {
  std::uint64_t used = 0;
  for (const auto& [path, folder] : folders_)
    for (const auto& [name, inode] : folder.now) used += inode->now.size();
  return used;
}

std::vector<std::byte> SimulatedDisk::survives(const Inode& inode) {
  std::vector<Change> pieces;
  for (const Change& change : inode.pending) {
    if (change.truncates) pieces.push_back(change);
    for (std::size_t at = 0; at < change.bytes.size();) {
      const std::uint64_t offset = change.offset + at;
      const std::size_t bytes =
          std::min(sector_bytes_ - static_cast<std::size_t>(offset % sector_bytes_),
                   change.bytes.size() - at);
      const auto from = change.bytes.begin() + static_cast<std::ptrdiff_t>(at);
      pieces.push_back({offset, {from, from + static_cast<std::ptrdiff_t>(bytes)}, false});
      at += bytes;
    }
  }
  const std::uint64_t how = draw(4);  // what survives: nothing, all, up to some moment, any part
  const std::size_t moment = how == 2 ? draw(pieces.size() + 1) : how == 0 ? 0 : pieces.size();
  std::vector<std::byte> file = inode.synced;
  for (std::size_t i = 0; i < moment; ++i) {
    if (how == 3 && draw(2) == 0) continue;
    apply(file, pieces[i]);
  }
  return file;
}

void SimulatedDisk::crash() {
  ++life_;
  left_.reset();
  fail_sync_ = false;
  for (auto& [path, folder] : folders_) {
    folder.open = false;
    const std::size_t kept = static_cast<std::size_t>(draw(folder.pending.size() + 1));
    if (kept < folder.pending.size()) folder.now = folder.pending[kept];
    folder.pending.clear();
    for (auto& [name, inode] : folder.now) {
      inode->now = inode->synced = survives(*inode);
      inode->pending.clear();
    }
  }
}

std::vector<std::string> SimulatedDisk::names(const std::string& path) const {
  std::vector<std::string> names;
  if (const auto folder = folders_.find(path); folder != folders_.end())
    for (const auto& [name, inode] : folder->second.now) names.push_back(name);
  return names;
}
std::vector<std::byte> SimulatedDisk::content(const std::string& path, const std::string& name) {
  return folders_.at(path).now.at(name)->now;
}
void SimulatedDisk::replace(const std::string& path, const std::string& name,
                            std::vector<std::byte> bytes) {
  auto inode = std::make_shared<Inode>();
  inode->now = inode->synced = std::move(bytes);
  folders_[path].now[name] = std::move(inode);
}
void SimulatedDisk::remove(const std::string& path, const std::string& name) {
  folders_.at(path).now.erase(name);
}

}  // namespace dunlin::log
