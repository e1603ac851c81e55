# Compiles PROGRAM with COMPILER and compares what happens with its first line: "// expect: ..."
file(STRINGS ${PROGRAM} first LIMIT_COUNT 1)
if(NOT first MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${PROGRAM} does not begin with '// expect: ' and a part of the message")
endif()
set(expected "${CMAKE_MATCH_1}")

execute_process(
  COMMAND ${COMPILER} -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
          -fsyntax-only -I${INCLUDE} ${PROGRAM}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(expected STREQUAL "it compiles")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "should compile, but:\n${output}")
  endif()
  return()
endif()
if(status EQUAL 0)
  message(FATAL_ERROR "compiles, but should be refused with '${expected}'")
endif()
string(FIND "${output}" "dunlin: " sentence)
string(FIND "${output}" "${expected}" found)
if(sentence EQUAL -1 OR found EQUAL -1)
  message(FATAL_ERROR "is refused, but not with '${expected}':\n${output}")
endif()
