#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <dunlin/fabric/memory.hpp>

#ifdef __has_feature  // how clang says it
#define DUNLIN_WORD_BY_WORD (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DUNLIN_WORD_BY_WORD 1
#else
#define DUNLIN_WORD_BY_WORD 0
#endif

#if defined(__x86_64__) && !DUNLIN_WORD_BY_WORD
#include <cpuid.h>
#include <immintrin.h>
#endif

/// Copies two words at once. Intel and AMD guarantee that a processor of theirs with AVX executes
/// an aligned MOVDQA of 16 bytes as one access (Intel SDM, volume 3, "Guaranteed Atomic
/// Operations"; AMD APM, volume 2, "Access Atomicity"). On x86-64 loads stay in their order, and
/// stores in theirs, so that FAB-M1 to FAB-M3 hold for pairs of words as for words. The sanitizers
/// do not see what these instructions touch, so with them everything is copied word by word.
namespace dunlin::memory::detail {

inline constexpr std::size_t kPairBytes = 2 * kWordBytes;
inline constexpr std::size_t kLineWords = kCacheLineBytes / kWordBytes;

#if defined(__x86_64__) && !DUNLIN_WORD_BY_WORD

/// Whether the code runs on the processor itself. An emulator may say that it is such a processor,
/// and take a pair in two accesses, as QEMU does without KVM. So behind a hypervisor only those
/// count that run code on the processor.
inline bool is_processor() noexcept {
  std::array<unsigned int, 4> id{};
  __cpuid(1, id[0], id[1], id[2], id[3]);
  constexpr unsigned int kBehindHypervisor = 1U << 31U;
  if ((id[2] & kBehindHypervisor) == 0) return true;
  __cpuid(0x4000'0000, id[0], id[1], id[2], id[3]);
  std::array<char, 12> name{};
  std::memcpy(name.data(), &id[1], name.size());
  for (const std::string_view known : {"KVMKVMKVM", "Microsoft Hv", "VMwareVMware", "XenVMMXenVMM"})
    if (std::string_view(name.data(), name.size()).starts_with(known)) return true;
  return false;
}

inline bool pairs_are_atomic() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx") && (__builtin_cpu_is("intel") || __builtin_cpu_is("amd")) &&
         is_processor();
}

inline bool is_pair(const std::byte* at) noexcept {
  return reinterpret_cast<std::uintptr_t>(at) % kPairBytes == 0;
}

template <bool Aligned>
[[gnu::always_inline]] inline __m128i load_pair(const std::byte* at) noexcept {
  __m128i pair;
  if constexpr (Aligned) {
    asm volatile("movdqa %1, %0"
                 : "=x"(pair)
                 : "m"(*reinterpret_cast<const __m128i*>(at))
                 : "memory");
  } else {
    const auto* words = reinterpret_cast<const std::uint64_t*>(at);
    asm volatile("movq %1, %0\n\tmovhps %2, %0"
                 : "=&x"(pair)
                 : "m"(words[0]), "m"(words[1])
                 : "memory");
  }
  return pair;
}

template <bool Aligned>
[[gnu::always_inline]] inline void store_pair(std::byte* at, __m128i pair) noexcept {
  if constexpr (Aligned) {
    asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<__m128i*>(at)) : "x"(pair) : "memory");
  } else {
    auto* words = reinterpret_cast<std::uint64_t*>(at);
    asm volatile("movq %2, %0\n\tmovhps %2, %1"
                 : "=m"(words[0]), "=m"(words[1])
                 : "x"(pair)
                 : "memory");
  }
}

/// Copies that many pieces of a line's size; `Target` and `Source` say which side consists of
/// aligned pairs. All loads of a piece go downwards, and all stores upwards: the target's side of
/// FAB-M2, and the source's of FAB-M3 if the pieces are lines.
template <bool Target, bool Source>
void copy_lines(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  for (; lines != 0; --lines, to += kCacheLineBytes, from += kCacheLineBytes) {
    const __m128i last = load_pair<Source>(from + 3 * kPairBytes);
    const __m128i third = load_pair<Source>(from + 2 * kPairBytes);
    const __m128i second = load_pair<Source>(from + kPairBytes);
    const __m128i first = load_pair<Source>(from);
    store_pair<Target>(to, first);
    store_pair<Target>(to + kPairBytes, second);
    store_pair<Target>(to + 2 * kPairBytes, third);
    store_pair<Target>(to + 3 * kPairBytes, last);
  }
}

/// Requires that `to` is aligned to a pair.
inline void place_lines(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  is_pair(from) ? copy_lines<true, true>(to, from, lines)
                : copy_lines<true, false>(to, from, lines);
}
/// Requires that `from` is aligned to a line.
inline void fetch_lines(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  is_pair(to) ? copy_lines<true, true>(to, from, lines) : copy_lines<false, true>(to, from, lines);
}

/// From so many bytes on, what a string instruction saves (it need not read the lines that it
/// writes) is more than what it takes to begin.
inline constexpr std::size_t kStringBytes = 16 * 1024;
/// From so many bytes on, the next reader finds little of a copy in a cache, and stores past the
/// caches save what these would read and write back. A put and the get that follows it at another
/// processor are 1.5 times as fast by such stores at 32 MB, equally fast at 4 MB, and take 1.6
/// times as long at 1 MB. A reader at the writer's own processor gains from 48 MB on.
inline constexpr std::size_t kPastCachesBytes = 32 << 20;
inline constexpr std::size_t kHalfLineBytes = kCacheLineBytes / 2;

/// The halves of 64 bytes, as vectors.
struct LineHalves {
  __m256i first, second;
};

[[gnu::target("avx"), gnu::always_inline]] inline LineHalves load_halves(
    const std::byte* at) noexcept {
  LineHalves line;
  asm volatile("vmovdqu %2, %0\n\tvmovdqu %3, %1"
               : "=&x"(line.first), "=x"(line.second)
               : "m"(*reinterpret_cast<const __m256i_u*>(at)),
                 "m"(*reinterpret_cast<const __m256i_u*>(at + kHalfLineBytes))
               : "memory");
  return line;
}

/// Requires that `to` is aligned to a line.
[[gnu::target("avx"), gnu::always_inline]] inline void copy_line_past_caches(
    std::byte* to, const std::byte* from) noexcept {
  const LineHalves line = load_halves(from);
  asm volatile("vmovntdq %2, %0\n\tvmovntdq %3, %1"
               : "=m"(*reinterpret_cast<__m256i*>(to)),
                 "=m"(*reinterpret_cast<__m256i*>(to + kHalfLineBytes))
               : "x"(line.first), "x"(line.second)
               : "memory");
}

inline void copy_single_words(std::byte* to, const std::byte* from, std::size_t words) noexcept {
  for (; words != 0; --words, to += kWordBytes, from += kWordBytes)
    store_raw<std::uint64_t>(to, load_raw<std::uint64_t>(from));
}

/// Copies that many aligned words by stores past the caches, in no order. Such stores may overtake
/// others and be overtaken, so one fence keeps them behind the stores before the copy, and another
/// one before the stores after it. Four pages take turns, as in the GNU C library's memcpy: this is
/// 1.2 times as fast as page after page.
[[gnu::target("avx")]] inline void copy_past_caches(std::byte* to, const std::byte* from,
                                                    std::size_t words) noexcept {
  constexpr std::size_t kPageBytes = 4'096, kPages = 4;
  const std::size_t into_line = reinterpret_cast<std::uintptr_t>(to) % kCacheLineBytes;
  const std::size_t head =
      std::min(words, (kCacheLineBytes - into_line) % kCacheLineBytes / kWordBytes);
  copy_single_words(to, from, head);
  to += head * kWordBytes;
  from += head * kWordBytes;
  std::size_t lines = (words - head) / kLineWords;
  const std::size_t tail = (words - head) % kLineWords;
  asm volatile("sfence" : : : "memory");
  constexpr std::size_t kLinesAtOnce = kPages * kPageBytes / kCacheLineBytes;
  for (; lines >= kLinesAtOnce; lines -= kLinesAtOnce) {
    for (std::size_t line = 0; line < kPageBytes; line += kCacheLineBytes)
      for (std::size_t at = line; at < kPages * kPageBytes; at += kPageBytes)
        copy_line_past_caches(to + at, from + at);
    to += kPages * kPageBytes;
    from += kPages * kPageBytes;
  }
  for (; lines != 0; --lines, to += kCacheLineBytes, from += kCacheLineBytes)
    copy_line_past_caches(to, from);
  asm volatile("sfence" : : : "memory");
  copy_single_words(to, from, tail);
}

/// Copies that many aligned words, in no order. A vector of 32 bytes is one access or several, of
/// which each has whole words; no manual says so, but Java's virtual machines rely on it for their
/// references. An iteration of MOVSQ is an access of a word, and only the order among its stores
/// is given up (Intel SDM, volume 3, "Memory-Ordering Model for String Operations").
[[gnu::target("avx")]] inline void copy_words(std::byte* to, const std::byte* from,
                                              std::size_t words) noexcept {
  if (words >= kPastCachesBytes / kWordBytes) return copy_past_caches(to, from, words);
  if (words >= kStringBytes / kWordBytes) {
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    return;
  }
  for (; words >= kLineWords; words -= kLineWords, to += kCacheLineBytes, from += kCacheLineBytes) {
    const LineHalves line = load_halves(from);
    asm volatile("vmovdqu %2, %0\n\tvmovdqu %3, %1"
                 : "=m"(*reinterpret_cast<__m256i_u*>(to)),
                   "=m"(*reinterpret_cast<__m256i_u*>(to + kHalfLineBytes))
                 : "x"(line.first), "x"(line.second)
                 : "memory");
  }
  copy_single_words(to, from, words);
}

#else

inline void copy_words(std::byte*, const std::byte*, std::size_t) noexcept {}
inline void copy_past_caches(std::byte*, const std::byte*, std::size_t) noexcept {}
inline bool pairs_are_atomic() noexcept { return false; }
inline void place_lines(std::byte*, const std::byte*, std::size_t) noexcept {}
inline void fetch_lines(std::byte*, const std::byte*, std::size_t) noexcept {}

#endif

}  // namespace dunlin::memory::detail
