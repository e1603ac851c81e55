# clang-tidy on every source whose content, headers included, it has not found clean before (tools/tidy.py). The
# target `tidy` looks at a few of the states of a function that the static analyzer is willing to look at, so it takes
# less time (docs/testing.md); `tidy_deep` looks at all. The program that ./run installs takes half of the time of Debian's.
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
  if(NOT LMDB_FOUND)
    list(FILTER lint_sources EXCLUDE REGEX "/bench/store/lmdb\\.cpp$")
  endif()
  if(NOT TARGET dunlin_fast_dds)
    list(FILTER lint_sources EXCLUDE REGEX "/bench/fast_dds/")
  endif()
  set(lint_command Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/tidy.py --build-dir ${PROJECT_BINARY_DIR}
                   --clang-tidy ${CLANG_TIDY})
  add_custom_target(tidy COMMAND ${lint_command} --analyzer-nodes 8000 ${lint_sources}
    COMMENT "clang-tidy" USES_TERMINAL VERBATIM)
  add_custom_target(tidy_deep COMMAND ${lint_command} ${lint_sources}
    COMMENT "clang-tidy, with all that the static analyzer can do" USES_TERMINAL VERBATIM)
endif()
