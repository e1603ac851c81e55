#include <algorithm>
#include <array>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.hpp"
#include "handles.hpp"

namespace dunlin::python {
namespace {

/// The elements that memory can have: their name, that of DLPack and that of the buffer protocol.
struct Element {
  const char* name;
  nb::dlpack::dtype dlpack;
  const char* format;
};
constexpr auto kOfBits = [](nb::dlpack::dtype_code code, std::uint8_t bits) {
  return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1};
};
using enum nb::dlpack::dtype_code;
constexpr std::array kElements{
    Element{"bool", kOfBits(Bool, 8), "?"}, Element{"int8", kOfBits(Int, 8), "b"},
    Element{"int16", kOfBits(Int, 16), "h"}, Element{"int32", kOfBits(Int, 32), "i"},
    Element{"int64", kOfBits(Int, 64), "q"}, Element{"uint8", kOfBits(UInt, 8), "B"},
    Element{"uint16", kOfBits(UInt, 16), "H"}, Element{"uint32", kOfBits(UInt, 32), "I"},
    Element{"uint64", kOfBits(UInt, 64), "Q"}, Element{"float16", kOfBits(Float, 16), "e"},
    Element{"float32", kOfBits(Float, 32), "f"}, Element{"float64", kOfBits(Float, 64), "d"},
    // The buffer protocol has no name for it.
    Element{"bfloat16", kOfBits(Bfloat, 16), "H"}};

struct PyMemory {
  std::shared_ptr<NodeState> state;
  std::shared_ptr<RegisteredMemory> memory;
  const Element* element;
  std::vector<std::size_t> shape;
  std::vector<Py_ssize_t> lengths;  // the shape and the strides, as the buffer protocol wants them
  std::vector<Py_ssize_t> strides;

  ~PyMemory() {
    if (!memory) return;
    const nb::gil_scoped_release others_run;
    memory.reset();
  }
};

int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  PyMemory& its = *nb::inst_ptr<PyMemory>(self);
  const std::span<std::byte> bytes = its.memory->span();
  if (PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 0,
                        flags) != 0)
    return -1;
  view->itemsize = its.element->dlpack.bits / 8;
  if ((flags & PyBUF_FORMAT) == PyBUF_FORMAT) view->format = const_cast<char*>(its.element->format);
  if ((flags & PyBUF_ND) != PyBUF_ND) return 0;
  view->ndim = static_cast<int>(its.lengths.size());
  view->shape = its.lengths.data();
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = its.strides.data();
  return 0;
}
PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
                              {0, nullptr}};

/// A tensor of the memory, whose owner is the Python object.
[[nodiscard]] nb::object tensor_of(nb::handle self) {
  PyMemory& its = *nb::inst_ptr<PyMemory>(self);
  const std::span<std::byte> bytes = its.memory->span();
  return nb::cast(nb::ndarray<nb::array_api>(bytes.data(), its.shape.size(), its.shape.data(), self,
                                             nullptr, its.element->dlpack));
}

[[nodiscard]] PyMemory make_memory(PyNode& node, std::vector<std::size_t> shape,
                                   const std::string& dtype) {
  const auto element =
      std::ranges::find_if(kElements, [&](const Element& one) { return dtype == one.name; });
  if (element == kElements.end())
    throw nb::value_error(("memory has no elements of type '" + dtype + "'").c_str());
  const std::size_t item = element->dlpack.bits / 8;
  std::size_t bytes = item;
  for (const std::size_t length : shape) {
    if (length != 0 && bytes > kMaxRegionBytes / length)
      throw nb::value_error("memory: the shape has more bytes than memory can have");
    bytes *= length;
  }
  if (bytes == 0) throw nb::value_error("memory: the shape has no elements");
  PyMemory made{.state = node.state,
                .memory = nullptr,
                .element = element,
                .shape = shape,
                .lengths = {},
                .strides = std::vector<Py_ssize_t>(shape.size())};
  auto stride = static_cast<Py_ssize_t>(item);
  for (std::size_t i = shape.size(); i-- > 0; stride *= static_cast<Py_ssize_t>(shape[i]))
    made.strides[i] = stride;
  made.lengths.assign(shape.begin(), shape.end());
  auto& all = node.state->memories();
  const nb::gil_scoped_release others_run;
  const auto& engine = node.state->engine();
  auto object = engine->with_lock([&] {
    return engine->object<RegisteredMemories>(
        "memory of Python", [&] { return std::make_shared<RegisteredMemories>(*engine); });
  });
  made.memory = std::make_shared<RegisteredMemory>(engine, object, bytes);
  const nb::gil_scoped_acquire gil;
  all = object;
  return made;
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::class_<PyMemory> its_class(
      module, "Memory", nb::type_slots(memory_slots), nb::is_weak_referenceable(),
      "An array in memory that the node's fabric has registered: a network card reads and writes "
      "it "
      "without a copy, when a Segment gets into it or puts from it. numpy.asarray(memory), "
      "torch.from_dlpack(memory) and memoryview(memory) are views of it, and keep it: also once "
      "the "
      "node has ended, when it is memory like any other.");
  BoundHandle<Store>::refuse_pickling(its_class);
  its_class
      .def_prop_ro(
          "shape", [](const PyMemory& its) { return nb::tuple(nb::cast(its.shape)); },
          "The lengths of the dimensions.", nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const PyMemory& its) { return its.element->name; },
          "The name of the type of an element, such as 'float32'.")
      .def_prop_ro(
          "nbytes", [](const PyMemory& its) { return its.memory->span().size(); },
          "The size in bytes.")
      .def(
          "__dlpack__",
          [](nb::handle self, nb::kwargs options) {
            return tensor_of(self).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **options: Any) -> Any"))
      .def(
          "__dlpack_device__", [](nb::handle) { return nb::make_tuple(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "_is_registered",
          [](const PyMemory& its, nb::handle buffer) {
            const Memory memory(buffer, Memory::Access::read);
            const auto bytes = memory.span();
            return its.state->memories()->registered(bytes).data() != bytes.data();
          },
          nb::arg("buffer"), "Whether the fabric uses the buffer's bytes in place; for tests.")
      .def("__len__",
           [](const PyMemory& its) {
             if (its.shape.empty()) throw nb::type_error("memory without dimensions has no length");
             return its.shape[0];
           })
      .def("__bool__", [](const PyMemory&) { return true; })
      .def("__repr__", [](const PyMemory& its) {
        return "<dunlin.Memory of " + std::to_string(its.memory->span().size()) + " bytes, " +
               its.element->name + ">";
      });
  module.def("make_memory", &make_memory);
}

}  // namespace dunlin::python
