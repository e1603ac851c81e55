#include "remote/counted_memory.hpp"

#include <cstdlib>
#include <new>

namespace {

using dunlin::test::allocations;
using dunlin::test::no_memory_for_frames;
using dunlin::test::no_memory_for_objects;

void* allocate(std::size_t bytes) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* allocate(std::size_t bytes, std::align_val_t aligned) noexcept {
  ++allocations;
  const auto line = static_cast<std::size_t>(aligned);
  return std::aligned_alloc(line, (bytes + line - 1) / line * line);
}
void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return or_throw(no_memory_for_objects ? nullptr : allocate(bytes));
}
void* operator new[](std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t line) {
  return or_throw(allocate(bytes, line));
}
void* operator new[](std::size_t bytes, std::align_val_t line) {
  return or_throw(allocate(bytes, line));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t line, const std::nothrow_t&) noexcept {
  return no_memory_for_frames ? nullptr : allocate(bytes, line);
}
void* operator new[](std::size_t bytes, std::align_val_t line, const std::nothrow_t&) noexcept {
  return allocate(bytes, line);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
