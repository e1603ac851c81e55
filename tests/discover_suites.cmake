# Runs when a test executable has been linked: writes a file that tells ctest of the suites of Google Test in it. Each
# suite is one test of ctest, and one process; of a suite with parameters, each parameter.
# usage: cmake -DEXECUTABLE=... -DARGUMENTS=... -DOUTPUT=... -P discover_suites.cmake; ARGUMENTS is a file that sets
#   PREFIX      how the names of the tests begin
#   PROPERTIES  what set_tests_properties() gives to each
#   LEFT_OUT    regular expressions of the suites, SUITE or SUITE/PARAMETER, that are none
cmake_minimum_required(VERSION 3.25)
include(${ARGUMENTS})

execute_process(COMMAND ${EXECUTABLE} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${EXECUTABLE} --gtest_list_tests: ${status}\n${listed}")
endif()

# A line for each suite, which ends in a dot, and below it one for each test: "  Name/Parameter  # comment".
string(REGEX REPLACE " *#[^\n]*" "" listed "${listed}")
string(REPLACE "\n" ";" listed "${listed}")
set(units)
foreach(line IN LISTS listed)
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  [^/]+(/.*)?$")
    list(APPEND units "${suite}${CMAKE_MATCH_1}")
    set(filter_${suite}${CMAKE_MATCH_1} "${suite}.*${CMAKE_MATCH_1}")
  endif()
endforeach()
list(REMOVE_DUPLICATES units)

if(LEFT_OUT)
  list(JOIN LEFT_OUT "|" regex)
  list(FILTER units EXCLUDE REGEX "^(${regex})$")
endif()

set(text)
foreach(unit IN LISTS units)
  set(name "${PREFIX}${unit}")
  string(APPEND text "add_test([=[${name}]=] [=[${EXECUTABLE}]=] [=[--gtest_filter=${filter_${unit}}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES ${PROPERTIES})\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
