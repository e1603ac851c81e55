# The target `tidy`: clang-tidy on every source whose content, headers included, it has not found clean
# before (tools/tidy.py). The one that ./run installs takes half of the time of Debian's.
find_package(Python3 3.9 COMPONENTS Interpreter)
find_program(CLANG_TIDY clang-tidy HINTS ${PROJECT_SOURCE_DIR}/build/venv/bin)

if(CLANG_TIDY AND Python3_FOUND)
  file(GLOB_RECURSE lint_sources CONFIGURE_DEPENDS
    src/*.cpp apps/*.cpp bench/*.cpp examples/*.cpp tests/*.cpp)
  # What must not compile cannot be analysed.
  list(FILTER lint_sources EXCLUDE REGEX "/compile_fail/")
  if(NOT TARGET dunlin_mpi_barrier)
    list(FILTER lint_sources EXCLUDE REGEX "/bench/mpi/")  # nor what needs an MPI that is not here
  endif()
  add_custom_target(tidy
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/tidy.py --build-dir ${PROJECT_BINARY_DIR}
            --clang-tidy ${CLANG_TIDY} ${lint_sources}
    COMMENT "clang-tidy" USES_TERMINAL VERBATIM)
endif()
