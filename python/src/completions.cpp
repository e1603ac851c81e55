#include "completions.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <dunlin/error.hpp>

namespace dunlin::python {

// --- the list ------------------------------------------------------------------------------------

Completions::Completions(nb::object loop, int descriptor)
    : descriptor_(descriptor),
      loop_(std::move(loop)),
      create_future_(loop_.attr("create_future")) {}

std::shared_ptr<Completions> Completions::make(nb::object loop) {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0)
    throw Error(std::string("asyncio: making an eventfd: ") + std::strerror(errno));
  std::shared_ptr<Completions> made(new Completions(std::move(loop), descriptor));
  // The loop keeps the list, and so the descriptor, as long as it watches the descriptor.
  made->loop_.attr("add_reader")(descriptor, nb::cpp_function([made] { made->drain(); }));
  return made;
}

Completions::~Completions() {
  for (Waiting* const waiting : ended_) delete waiting;
  ::close(descriptor_);
}

void Completions::push(Waiting* ended) noexcept {
  const std::lock_guard lock(mutex_);
  ended_.push_back(ended);
  const std::uint64_t one = 1;
  if (ended_.size() == 1) static_cast<void>(!::write(descriptor_, &one, sizeof one));  // PY-2
}

std::vector<Waiting*> Completions::take() noexcept {
  std::uint64_t rings = 0;
  static_cast<void>(!::read(descriptor_, &rings, sizeof rings));  // PY-2
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void Completions::drain() {
  for (Waiting* const waiting : take()) {
    const std::unique_ptr<Waiting> owned(waiting);
    try {
      owned->settle();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("dunlin: the end of an awaited call");
    }
  }
}

nb::object running_loop() {
  static PyObject* const get =
      nb::module_::import_("asyncio").attr("get_running_loop").inc_ref().ptr();
  PyObject* const loop = PyObject_CallNoArgs(get);
  if (loop != nullptr) return nb::steal(loop);
  nb::python_error without;
  nb::raise_from(without, PyExc_RuntimeError,
                 "no running event loop: an awaited call that does not end at once needs a loop "
                 "of asyncio or uvloop, and not trio's");
  throw nb::python_error();
}

// --- what is there already -----------------------------------------------------------------------

namespace {

struct Ready {
  nb::object value;  // or the exception
  bool failed = false;
};

PyObject* ready_await(PyObject* self) { return Py_NewRef(self); }
/// The interpreter sends to the awaitable; the value comes back without an exception.
PySendResult ready_send(PyObject* self, PyObject*, PyObject** result) {
  const Ready& ready = *nb::inst_ptr<Ready>(self);
  if (ready.failed) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(ready.value.ptr())), ready.value.ptr());
    return PYGEN_ERROR;
  }
  *result = nb::object(ready.value).release().ptr();
  return PYGEN_RETURN;
}
/// For those that call next() in place of send().
PyObject* ready_next(PyObject* self) {
  PyObject* value = nullptr;
  if (ready_send(self, nullptr, &value) == PYGEN_ERROR) return nullptr;
  PyObject* const stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, nullptr);
  Py_DECREF(value);
  if (stop != nullptr) {
    PyErr_SetObject(PyExc_StopIteration, stop);
    Py_DECREF(stop);
  }
  return nullptr;
}
PyType_Slot ready_slots[] = {{Py_am_await, reinterpret_cast<void*>(ready_await)},
                             {Py_am_send, reinterpret_cast<void*>(ready_send)},
                             {Py_tp_iter, reinterpret_cast<void*>(ready_await)},
                             {Py_tp_iternext, reinterpret_cast<void*>(ready_next)},
                             {0, nullptr}};

}  // namespace

nb::object make_ready(nb::object value) { return nb::cast(Ready{std::move(value)}); }
nb::object make_failed(nb::object error) { return nb::cast(Ready{std::move(error), true}); }

void bind_completions(nb::module_& module) {
  nb::class_<Ready>(module, "Ready", nb::type_slots(ready_slots),
                    "The awaited end of a call that has ended.");
}

}  // namespace dunlin::python
