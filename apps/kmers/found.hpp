#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <dunlin/error.hpp>

#include "kmers/kmer.hpp"
#include "kmers/spill.hpp"

namespace dunlin::kmers {

/// A k-mer that was counted. A file of counts has these, in the order of their k-mers.
struct FoundKmer {
  Kmer kmer;
  std::uint64_t count;
};

/// Reads a file of counts from its beginning to its end. Throws Error if it cannot be read.
class FoundFile {
 public:
  explicit FoundFile(std::string path)
      : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rbe")) {
    if (file_ == nullptr) fail();
  }
  /// False behind the last one.
  [[nodiscard]] bool next(FoundKmer& found) {
    if (at_ == size_) {
      size_ = std::fread(block_.data(), sizeof(FoundKmer), block_.size(), file_.get());
      at_ = 0;
      if (size_ == 0 && std::ferror(file_.get()) != 0) fail();
    }
    if (at_ == size_) return false;
    found = block_[at_++];
    return true;
  }

 private:
  [[noreturn]] void fail() const { throw Error("'" + path_ + "' cannot be read"); }

  std::string path_;
  File file_;
  std::array<FoundKmer, 1024> block_;
  std::size_t at_ = 0, size_ = 0;
};

}  // namespace dunlin::kmers
