#include "mcap/compression.hpp"

#include <memory>

#include <fmt/format.h>
#include <lz4frame.h>
#include <zstd.h>

#include <dunlin/error.hpp>

#include "text.hpp"

namespace dunlin::app::mcap {
namespace {

constexpr int kZstdLevel = 1;

std::string wrong_size(std::uint64_t has, std::uint64_t says) {
  return fmt::format("it has {} bytes when it is decompressed, not {}", has, says);
}

std::string by_zstd(Bytes from, Buffer& to) {
  const std::size_t size = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
  if (ZSTD_isError(size) != 0)
    return fmt::format("zstd cannot decompress it: {}", ZSTD_getErrorName(size));
  return size == to.size() ? std::string() : wrong_size(size, to.size());
}

std::string by_lz4(Bytes from, Buffer& to) {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0)
    return "there is no memory for lz4";
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
      made, &LZ4F_freeDecompressionContext);
  std::size_t read = 0;
  std::size_t written = 0;
  while (read < from.size()) {
    std::size_t taken = from.size() - read;
    std::size_t given = to.size() - written;
    const std::size_t result = LZ4F_decompress(context.get(), to.data() + written, &given,
                                               from.data() + read, &taken, nullptr);
    if (LZ4F_isError(result) != 0)
      return fmt::format("lz4 cannot decompress it: {}", LZ4F_getErrorName(result));
    if (taken == 0 && given == 0) return fmt::format("it has more than {} bytes", to.size());
    read += taken;
    written += given;
  }
  return written == to.size() ? std::string() : wrong_size(written, to.size());
}

}  // namespace

Buffer compress_by_zstd(Bytes from) {
  Buffer to(ZSTD_compressBound(from.size()));
  const std::size_t size =
      ZSTD_compress(to.data(), to.size(), from.data(), from.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0)
    throw Error(fmt::format("zstd cannot compress a chunk: {}", ZSTD_getErrorName(size)));
  to.resize(size);
  return to;
}

std::string decompress(const std::string& compression, Bytes from, std::uint64_t bytes,
                       Buffer& to) {
  if (bytes > kMaxChunkBytes)
    return fmt::format("it has {} bytes; {} can be read (kMaxChunkBytes)", bytes, kMaxChunkBytes);
  if (compression.empty()) {
    if (from.size() != bytes)
      return fmt::format("it has {} bytes, and says that there are {}", from.size(), bytes);
    to.assign(from.begin(), from.end());
    return {};
  }
  if (compression != "zstd" && compression != "lz4")
    return fmt::format("its compression {} is unknown; zstd and lz4 are known",
                       in_quotes(compression));
  to.resize(bytes);
  return compression == "zstd" ? by_zstd(from, to) : by_lz4(from, to);
}

}  // namespace dunlin::app::mcap
