#pragma once

#include <memory>

#include "log/disk.hpp"

namespace dunlin::log {

/// Plain files: written by pwrite, synced by fdatasync on a thread of the worker's own.
[[nodiscard]] std::shared_ptr<Disk> posix_disk();
/// Opens the directory of a log for reading, without its lock, so beside a process that has it.
/// Changes fail. Throws Error if it is not there.
[[nodiscard]] std::unique_ptr<Directory> look_into(const std::string& path);

}  // namespace dunlin::log
