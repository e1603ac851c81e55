#pragma once

/// Preconditions and invariants, stated where the code relies on them:
///
///     DUNLIN_ASSERT(bytes % 8 == 0, "MC-R1: a record begins at a multiple of 8");
///
/// A condition that does not hold ends the process, with the place, the sentence and the condition
/// on standard error. The sentence begins with the invariant's name, if it has one.
///
/// DUNLIN_ASSERT is for the data path: active in debug and sanitizer trees, and not evaluated in
/// release trees. DUNLIN_ASSERT_ALWAYS is for everything else: active in every tree.
///
/// Data that a peer can write (rows, rings, frames, messages), or that a disk returns, is checked
/// and never asserted: no peer can make an assertion fail. Only sources (*.cpp) assert: a program
/// may be built unlike the library. In a build with faults (tests/fault_injection) assertions are
/// off, because there the auditor must find what is wrong.
namespace dunlin {

/// Prints and aborts.
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition,
                                   const char* sentence) noexcept;

}  // namespace dunlin

#ifdef DUNLIN_FAULT_INJECTION
#define DUNLIN_ASSERT_ALWAYS(condition, sentence) static_cast<void>(sizeof(!(condition)))
#else
#define DUNLIN_ASSERT_ALWAYS(condition, sentence) \
  ((condition) ? static_cast<void>(0)             \
               : ::dunlin::assertion_failed(__FILE__, __LINE__, #condition, sentence))
#endif

#ifdef NDEBUG
#define DUNLIN_ASSERT(condition, sentence) static_cast<void>(sizeof(!(condition)))
#else
#define DUNLIN_ASSERT(condition, sentence) DUNLIN_ASSERT_ALWAYS(condition, sentence)
#endif
