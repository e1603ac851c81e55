#include "log/posix_disk.hpp"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <dunlin/fabric.hpp>

#include "fabric/forking.hpp"
#include "fabric/system.hpp"

namespace dunlin::log {
namespace {

/// Tells the operator what to do about an error, where that is known.
[[nodiscard]] const char* advice(int error) noexcept {
  switch (error) {
    case ENOENT:
      return "; make the directory that it is in";
    case ENOTDIR:
      return "; a directory is needed there";
    case ENOSPC:
      return "; make room on this file system";
    case EDQUOT:
      return "; the quota is used up";
    case EFBIG:
      return "; files may be no longer (ulimit -f)";
    case EROFS:
      return "; remount it writable, or choose another directory";
    case EACCES:
    case EPERM:
      return "; give this user the right to read and write there";
    default:
      return "";
  }
}

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw Error("'" + path + "': " + what + " failed: " + error_text(error) + advice(error));
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::uint64_t bytes() override {
    struct stat status {};
    if (fstat(file_.get(), &status) != 0) fail(path_, "asking for its size", errno);
    return static_cast<std::uint64_t>(status.st_size);
  }
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = pread(file_.get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
      if (got == 0) break;
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (errno != EINTR) {
        fail(path_, at(offset + done, "reading", into.size() - done), errno);
      }
    }
    return done;
  }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    std::size_t done = 0;
    while (done < from.size()) {
      const ssize_t put = pwrite(file_.get(), from.data() + done, from.size() - done,
                                 static_cast<off_t>(offset + done));
      if (put > 0) {
        done += static_cast<std::size_t>(put);  // a full disk takes less first, then says why
      } else if (put == 0 || errno != EINTR) {
        fail(path_, at(offset + done, "writing", from.size() - done), put == 0 ? ENOSPC : errno);
      }
    }
  }
  void truncate(std::uint64_t bytes) override {
    if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
      fail(path_, "cutting it off at offset " + std::to_string(bytes), errno);
  }
  void sync() override {
    if (fdatasync(file_.get()) != 0) fail(path_, "syncing it to the disk (fdatasync)", errno);
  }

 private:
  static std::string at(std::uint64_t offset, const char* doing, std::size_t bytes) {
    return std::string(doing) + " " + std::to_string(bytes) + " bytes at offset " +
           std::to_string(offset);
  }

  std::string path_;
  Descriptor file_;
};

class PosixDirectory final : public Directory {
 public:
  struct ReadOnly {};
  PosixDirectory(std::string path, ReadOnly) : path_(std::move(path)), access_(O_RDONLY) {
    directory_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory_) fail(path_, "opening this directory", errno);
  }
  explicit PosixDirectory(std::string path) : path_(std::move(path)) {
    const bool made = mkdir(path_.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) fail(path_, "making this directory", errno);
    directory_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory_) fail(path_, "opening this directory", errno);
    // Without a lock, the process that made the directory may have died before it was on the disk.
    if (faccessat(directory_.get(), "lock", F_OK, 0) != 0) sync_parent(made);
    lock_ = Descriptor(
        openat(directory_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!lock_) fail(path_ + "/lock", "opening it for writing", errno);
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) fail(path_ + "/lock", "locking it", errno);
    throw Error("'" + path_ +
                "' is in use by another log, in this process or another one: give each member a "
                "directory of its own");
  }

  std::string path() const override { return path_; }
  std::vector<std::string> names() override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(path_, error), end; !error && at != end;
         at.increment(error))
      names.push_back(at->path().filename().string());
    if (error) fail(path_, "listing this directory", error.value());
    return names;
  }
  std::unique_ptr<File> open(const std::string& name) override { return open(name, 0); }
  std::unique_ptr<File> create(const std::string& name) override {
    return open(name, O_CREAT | O_TRUNC);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0)
      fail(path_ + "/" + from, "renaming it to '" + to + "'", errno);
  }
  void remove(const std::string& name) override {
    if (unlinkat(directory_.get(), name.c_str(), 0) != 0)
      fail(path_ + "/" + name, "removing it", errno);
  }
  void sync() override {
    if (fsync(directory_.get()) != 0) fail(path_, "syncing this directory to the disk", errno);
  }
  std::uint64_t draw_salt() override {
    std::uint64_t salt = 0;
    while (salt == 0)
      if (getrandom(&salt, sizeof salt, 0) < 0 && errno != EINTR)
        fail(path_, "drawing a random number for it", errno);
    return salt;
  }

 private:
  std::unique_ptr<File> open(const std::string& name, int flags) {
    // Without O_NONBLOCK, opening a FIFO waits for its other end.
    Descriptor file(openat(directory_.get(), name.c_str(),
                           access_ | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666));
    const std::string path = path_ + "/" + name;
    const char* const opening =
        access_ == O_RDONLY ? "opening it for reading" : "opening it for reading and writing";
    if (!file) fail(path, flags == 0 ? opening : "making it", errno);
    struct stat status {};
    if (fstat(file.get(), &status) != 0) fail(path, "asking what it is", errno);
    if (!S_ISREG(status.st_mode)) throw Error("'" + path + "' is no regular file");
    return std::make_unique<PosixFile>(path, std::move(file));
  }
  /// If another user made the directory, this process may not be allowed to read its parent; then
  /// that user has to sync the parent.
  void sync_parent(bool made) const {
    std::filesystem::path self = std::filesystem::absolute(path_);
    if (!self.has_filename()) self = self.parent_path();  // the path ends with a slash
    const std::filesystem::path parent = self.parent_path();
    const Descriptor above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!above && errno == EACCES && !made) return;
    if (!above || fsync(above.get()) != 0)
      fail(parent.string(), "syncing this directory to the disk", errno);
  }

  std::string path_;
  Descriptor directory_;
  Descriptor lock_;
  int access_ = O_RDWR;
};

class ThreadWorker final : public Worker, private ForkAware {
 public:
  explicit ThreadWorker(std::function<void()> job) : job_(std::move(job)) {
    shared_->thread = std::thread([this] { work(); });
  }
  ThreadWorker(const ThreadWorker&) = delete;
  ThreadWorker& operator=(const ThreadWorker&) = delete;
  ~ThreadWorker() override {
    if (is_forked_) {
      static_cast<void>(shared_.release());  // the parent has its thread
      return;
    }
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->over = true;
    }
    shared_->changed.notify_one();
    shared_->thread.join();
  }

  void start() override {
    shared_->busy.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->asked = true;
    }
    shared_->changed.notify_one();
  }
  /// Acquires what work() has released.
  bool idle() override { return !shared_->busy.load(std::memory_order_acquire); }
  void wait() override {
    if (is_forked_) return;
    std::unique_lock lock(shared_->mutex);
    shared_->done.wait(lock, [this] { return idle(); });
  }
  bool is_gone() const noexcept override { return is_forked_; }
  void wake(Fabric* fabric) override {
    if (is_forked_) return;
    const std::lock_guard lock(shared_->mutex);
    shared_->fabric = fabric;
  }

 private:
  /// What a forked child gets in the state that the thread has left it in, and must not touch.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::condition_variable done;
    bool asked = false;
    bool over = false;
    Fabric* fabric = nullptr;
    std::atomic<bool> busy = false;
    std::thread thread;
  };

  void in_child() noexcept override { is_forked_ = true; }
  void work() {
    std::unique_lock lock(shared_->mutex);
    for (;;) {
      shared_->changed.wait(lock, [this] { return shared_->asked || shared_->over; });
      if (!shared_->asked) return;
      shared_->asked = false;
      lock.unlock();
      job_();
      lock.lock();
      shared_->busy.store(false, std::memory_order_release);  // idle() acquires it
      if (shared_->fabric != nullptr) shared_->fabric->wake();
      shared_->done.notify_all();
    }
  }

  const std::function<void()> job_;
  bool is_forked_ = false;
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
};

class PosixDisk final : public Disk {
 public:
  std::unique_ptr<Directory> open(const std::string& path) override {
    return std::make_unique<PosixDirectory>(path);
  }
  std::unique_ptr<Worker> hire(std::function<void()> job) override {
    try {
      return std::make_unique<ThreadWorker>(std::move(job));
    } catch (const std::system_error& error) {
      throw Error(std::string("no thread can be started that writes a log: ") + error.what() +
                  "; allow this user more of them (ulimit -u)");
    }
  }
};

}  // namespace

std::shared_ptr<Disk> posix_disk() { return std::make_shared<PosixDisk>(); }

std::unique_ptr<Directory> look_into(const std::string& path) {
  return std::make_unique<PosixDirectory>(path, PosixDirectory::ReadOnly{});
}

}  // namespace dunlin::log
