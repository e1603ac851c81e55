#include <nanobind/nanobind.h>

#include <dunlin/version.hpp>

#include "completions.hpp"
#include "errors.hpp"
#include "handles.hpp"

NB_MODULE(_core, module) {
  using namespace dunlin::python;
  // What is alive when the interpreter ends is no leak: dunlin/__init__.py has closed the nodes.
  nanobind::set_leak_warnings(false);
  bind_errors();
  bind_completions(module);
  bind_node(module);
  bind_store(module);
  bind_segments(module);
  bind_containers(module);
  bind_memory(module);
  bind_tables(module);
  bind_topics(module);
  module.attr("__version__") = nanobind::str(dunlin::version().data(), dunlin::version().size());
}
