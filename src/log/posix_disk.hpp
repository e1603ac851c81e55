#pragma once

#include <memory>

#include "log/disk.hpp"

namespace dunlin::log {

/// Plain files: written by pwrite, synced by fdatasync on a thread of the worker's own.
[[nodiscard]] std::shared_ptr<Disk> posix_disk();

}  // namespace dunlin::log
