# The target `tidy`. One clang-tidy run a source, repeated only when that source or
# any header has changed. The one that ./run installs takes half of the time of Debian's.
find_program(CLANG_TIDY clang-tidy HINTS ${PROJECT_SOURCE_DIR}/build/venv/bin)

file(GLOB_RECURSE lint_sources CONFIGURE_DEPENDS
  src/*.cpp apps/*.cpp bench/*.cpp examples/*.cpp tests/*.cpp)
file(GLOB_RECURSE lint_headers CONFIGURE_DEPENDS
  include/*.hpp src/*.hpp apps/*.hpp bench/*.hpp tests/*.hpp)
set(lint_rules ${PROJECT_SOURCE_DIR}/.clang-tidy ${PROJECT_SOURCE_DIR}/src/.clang-tidy)

if(CLANG_TIDY)
  # What must not compile cannot be analysed.
  list(FILTER lint_sources EXCLUDE REGEX "/compile_fail/")
  if(NOT TARGET dunlin_mpi_barrier)
    list(FILTER lint_sources EXCLUDE REGEX "/bench/mpi/")  # nor what needs an MPI that is not here
  endif()
  set(stamps)
  foreach(source IN LISTS lint_sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    set(stamp ${PROJECT_BINARY_DIR}/tidy/${name}.ok)
    cmake_path(GET stamp PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${CLANG_TIDY} --quiet -p ${PROJECT_BINARY_DIR} ${source}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${source} ${lint_headers} ${lint_rules}
      COMMENT "clang-tidy ${name}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(tidy DEPENDS ${stamps})
endif()
