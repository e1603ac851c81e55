# The Python package, where it can be built: a test of ctest for each file of python/tests, and others about the package.
if(NOT TARGET dunlin_python)
  return()
endif()
add_subdirectory(python)
add_custom_target(python_tests ALL DEPENDS dunlin_python python_partner)
set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
set(python_sources ${PROJECT_SOURCE_DIR}/python)
set(python_environment PYTHONPATH=${PROJECT_BINARY_DIR}/python DUNLIN_PARTNER=$<TARGET_FILE:python_partner>
    MYPY_CACHE_DIR=${CMAKE_CURRENT_BINARY_DIR}/mypy
    HYPOTHESIS_STORAGE_DIRECTORY=${CMAKE_CURRENT_BINARY_DIR}/hypothesis)
if(DUNLIN_SANITIZE)
  # Python has no sanitizer's runtime, and frees little of its own memory when it ends.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
                  OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${runtime}")
    message(FATAL_ERROR "clang's runtime of the address sanitizer is missing (libclang-rt-14-dev)")
  endif()
  list(APPEND python_environment LD_PRELOAD=${runtime} ASAN_OPTIONS=detect_leaks=0
       UBSAN_OPTIONS=print_stacktrace=1)
endif()

# A test of the package in this build tree.
function(dunlin_python_test name) # COMMAND...
  set(test "${prefix}python.${name}")
  add_test(NAME "${test}" COMMAND ${python} -B ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties("${test}" PROPERTIES TIMEOUT 600 ENVIRONMENT "${python_environment}"
    ENVIRONMENT_MODIFICATION "DUNLIN_NETWORK=unset:;DUNLIN_CONFIG=unset:")
endfunction()

file(GLOB files CONFIGURE_DEPENDS ${python_sources}/tests/test_*.py)
foreach(file IN LISTS files)
  string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" name ${file})
  if(NOT DUNLIN_SANITIZE OR NOT name STREQUAL packaging)  # which runs CMake, and little of the module
    # A test that waits in vain says where.
    dunlin_python_test(${name} -m pytest -q -p no:cacheprovider -o faulthandler_timeout=300 ${file})
  endif()
endforeach()
if(DUNLIN_SANITIZE)
  return()
endif()
add_dependencies(python_tests dunlin_stub)
dunlin_python_test(reference ${python_sources}/tools/reference.py --check ${PROJECT_SOURCE_DIR}/docs/python-reference.md)

# The stubs name all that is there, with its arguments; and the examples keep to them.
if(EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/mypy)
  file(GLOB examples CONFIGURE_DEPENDS ${python_sources}/examples/*.py ${python_sources}/bench/*.py)
  set(configuration ${python_sources}/tools/mypy.ini)
  dunlin_python_test(stubs -m mypy.stubtest --mypy-config-file ${configuration}
                     --allowlist ${python_sources}/tools/stubtest.txt dunlin)
  dunlin_python_test(types -m mypy --config-file ${configuration} --strict --scripts-are-modules ${examples})
  set_tests_properties(python.types python.stubs PROPERTIES RESOURCE_LOCK mypy)
endif()

if(DUNLIN_ALL_TESTS)
  add_dependencies(python_tests python_calls)
  dunlin_python_test(bench ${python_sources}/bench/run.py --quick --calls $<TARGET_FILE:python_calls>)

  # Wheels, as they would be published; each is a build of the library and of the command.
  foreach(kind this abi3)
    dunlin_python_test(wheel_${kind} ${python_sources}/tests/wheel.py ${kind} ${PROJECT_SOURCE_DIR}
                       ${PROJECT_BINARY_DIR}/wheel_${kind})
    set_tests_properties(python.wheel_${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600 PROCESSORS 2
                         RESOURCE_LOCK python_wheel)
  endforeach()
endif()
