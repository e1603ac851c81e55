# The Python package, where it can be built: a test of ctest for each file of python/tests.
if(NOT TARGET dunlin_python)
  return()
endif()
add_subdirectory(python)
add_custom_target(python_tests ALL DEPENDS dunlin_python python_partner)
file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tests/test_*.py)
set(environment PYTHONPATH=${PROJECT_BINARY_DIR}/python DUNLIN_PARTNER=$<TARGET_FILE:python_partner>
                HYPOTHESIS_STORAGE_DIRECTORY=${CMAKE_CURRENT_BINARY_DIR}/hypothesis)
foreach(file IN LISTS files)
  string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" name ${file})
  add_test(NAME python.${name}
    COMMAND ${PROJECT_SOURCE_DIR}/build/venv/bin/python -B -m pytest -q -p no:cacheprovider ${file}
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(python.${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "${environment}"
    ENVIRONMENT_MODIFICATION "DUNLIN_NETWORK=unset:;DUNLIN_CONFIG=unset:")
endforeach()
