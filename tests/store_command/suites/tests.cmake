# The tests that others wrote for Redis, against `dunlin store serve`; each has a list of what is expected to fail.
foreach(suite redis_py redis_units)
  add_test(NAME "${prefix}store_command.suites.${suite}"
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.py ${suite} $<TARGET_FILE:dunlin_command> ${PROJECT_SOURCE_DIR}/build/suites
            ${PROJECT_SOURCE_DIR}/build/venv/bin/python3)
  set_tests_properties("${prefix}store_command.suites.${suite}" PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
endforeach()
