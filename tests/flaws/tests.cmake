# Sources with bugs to be switched on (src/flaw.hpp), for the auditor to find. They come before the
# library's own, which are then left out. Some flaws are undefined behaviour.
if(NOT DUNLIN_SANITIZE)
  file(GLOB flawed CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/group/*.cpp ${PROJECT_SOURCE_DIR}/src/multicast/*.cpp)
  add_library(dunlin_flaws OBJECT ${flawed} ${PROJECT_SOURCE_DIR}/src/table/core.cpp)
  target_compile_definitions(dunlin_flaws PUBLIC DUNLIN_FLAWS)
  target_include_directories(dunlin_flaws PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(dunlin_flaws PRIVATE dunlin dunlin_options)

  add_executable(dunlin_flawed flaws/command/main.cpp flaws/catalogue.cpp)
  target_include_directories(dunlin_flawed PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(dunlin_flawed PRIVATE dunlin_flaws dunlin_app dunlin_options)

  dunlin_tests(flaws dunlin_flaws dunlin_app)

  # What depends on rows that reach some and not others is found by the agreement's own test.
  add_executable(flawed_views flaws/command/views.cpp flaws/catalogue.cpp group/view_change_test.cpp)
  target_include_directories(flawed_views PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(flawed_views PRIVATE dunlin_flaws dunlin dunlin_options GTest::gtest)
  # clang-tidy has seen these sources already.
  set_target_properties(dunlin_flaws flawed_views PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
  foreach(flaw accepted_is_forgotten=GRP-A1 any_number_is_a_quorum=GRP-A1 trim_is_the_leaders=GRP-A2)
    string(REPLACE "=" ";" flaw ${flaw})
    list(GET flaw 0 name)
    list(GET flaw 1 broken)
    add_test(NAME flaws.views.${name} COMMAND flawed_views ${name})
    set_tests_properties(flaws.views.${name} PROPERTIES PASS_REGULAR_EXPRESSION "Expected.*\n${broken}\n")
  endforeach()
endif()
