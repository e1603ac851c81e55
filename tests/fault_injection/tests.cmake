# Programs of real code in which a fault can be switched on, for an audit to find (docs/testing.md, "Fault injection").
# Their sources come before the library's own, which are then left out. Some faults are undefined behaviour.
if(DUNLIN_SANITIZE)
  return()
endif()
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(faults_py ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fault_injection/faults.py)

# The program TARGET: what SOURCES name below tests/, and the sources of LAYERS, with the faults of their files.
function(dunlin_with_faults target)
  cmake_parse_arguments(arg "" "MAIN" "LAYERS;SOURCES;LIBRARIES" ${ARGN})
  set(files ${arg_LAYERS})
  list(TRANSFORM files REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/fault_injection/\\1.toml")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files} fault_injection/faults.py)
  execute_process(COMMAND ${faults_py} sources ${files} OUTPUT_VARIABLE faulty COMMAND_ERROR_IS_FATAL ANY)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources)
  set(written ${faulty})
  list(TRANSFORM written PREPEND ${folder}/)
  list(TRANSFORM faulty PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${written} ${folder}/injected_faults.hpp
    COMMAND ${faults_py} write ${folder} ${files}
    DEPENDS ${files} ${faulty} ${CMAKE_CURRENT_SOURCE_DIR}/fault_injection/faults.py)

  add_executable(${target} ${folder}/injected_faults.hpp fault_injection/command/${arg_MAIN} ${arg_SOURCES})
  target_compile_definitions(${target} PRIVATE DUNLIN_FAULT_INJECTION)
  target_include_directories(${target} PRIVATE ${folder} ${folder}/src
                             ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} dunlin dunlin_options)
  list(TRANSFORM arg_LAYERS PREPEND src/)
  dunlin_add_units(${target} ${arg_LAYERS} IN ${folder} ${faulty})
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # clang-tidy has seen these sources

  execute_process(COMMAND ${faults_py} tests ${target} ${files} OUTPUT_VARIABLE tests COMMAND_ERROR_IS_FATAL ANY)
  cmake_language(EVAL CODE "${tests}")
endfunction()

set(test_libraries dunlin_process test_support GTest::gtest)
dunlin_with_faults(dunlin_with_fault MAIN dunlin_with_fault.cpp LAYERS table group multicast LIBRARIES dunlin_app)
dunlin_with_faults(views_with_fault MAIN tests_with_fault.cpp LAYERS table group multicast
  SOURCES group/view_change_test.cpp LIBRARIES ${test_libraries})
dunlin_with_faults(segments_with_fault MAIN tests_with_fault.cpp LAYERS remote segment
  SOURCES segment/scripted_test.cpp segment/seeds_test.cpp LIBRARIES ${test_libraries})
dunlin_with_faults(daemon_with_fault MAIN tests_with_fault.cpp LAYERS daemon
  SOURCES daemon/death_test.cpp daemon/garbage_test.cpp LIBRARIES ${test_libraries})
dunlin_with_faults(stores_with_fault MAIN tests_with_fault.cpp LAYERS remote store
  SOURCES store/seeds_test.cpp store/death_test.cpp store/growth_test.cpp store/copies_test.cpp store/leave_test.cpp
          store/moves_death_test.cpp store/transaction_death_test.cpp store/transaction_cut_test.cpp
          store/transaction_copies_test.cpp store/plan_test.cpp store/slot_map_scenario_test.cpp
          store/slot_placement_test.cpp store/hazards_test.cpp store/slow_links_test.cpp
  LIBRARIES ${test_libraries})
target_compile_definitions(stores_with_fault PRIVATE
                           DUNLIN_SCENARIOS="${CMAKE_CURRENT_SOURCE_DIR}/store/scenarios")
dunlin_with_faults(topics_with_fault MAIN tests_with_fault.cpp LAYERS pubsub
  SOURCES pubsub/seeds_test.cpp pubsub/late_test.cpp pubsub/kept_in_log_test.cpp pubsub/qos_test.cpp
          pubsub/order_test.cpp pubsub/order_seeds_test.cpp
  LIBRARIES ${test_libraries})
dunlin_with_faults(containers_with_fault MAIN tests_with_fault.cpp LAYERS container
  SOURCES container/seeds_test.cpp container/churn_seeds_test.cpp container/pooled_seeds_test.cpp
          container/aggregator_seeds_test.cpp container/scan_test.cpp container/check_test.cpp container/packed_test.cpp container/reuse_test.cpp
          container/collectives_seeds_test.cpp container/function_seeds_test.cpp container/phases_seeds_test.cpp
  LIBRARIES ${test_libraries})
