# The examples against the *installed* package, as a user would build them: by find_package and by
# pkg-config; and the project as part of another one.
find_program(PKG_CONFIG pkg-config)

set(here ${CMAKE_CURRENT_LIST_DIR})
set(root ${PROJECT_BINARY_DIR}/installed)
set(examples ${PROJECT_SOURCE_DIR}/examples)
set(same_tools --build-generator ${CMAKE_GENERATOR} --build-options
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE})

add_test(NAME installed.install
  COMMAND ${here}/install.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${root})
set_tests_properties(installed.install PROPERTIES FIXTURES_SETUP installed)

add_test(NAME installed.find_package
  COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${examples} ${PROJECT_BINARY_DIR}/examples_installed
          ${same_tools} -DCMAKE_PREFIX_PATH=${root}
          --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure --no-tests=error)
add_test(NAME installed.refuses_another_version
  COMMAND ${CMAKE_COMMAND} -DCMAKE_PREFIX_PATH=${root} -P ${here}/other_version.cmake)
if(DUNLIN_APPS)
  add_test(NAME installed.command COMMAND ${root}/bin/dunlin --version)
  set_tests_properties(installed.command PROPERTIES
    PASS_REGULAR_EXPRESSION "^dunlin ${PROJECT_VERSION}\n$" FIXTURES_REQUIRED installed)
endif()
set_tests_properties(installed.find_package installed.refuses_another_version PROPERTIES
  FIXTURES_REQUIRED installed)

if(TARGET dunlin_bench_command)
  add_test(NAME installed.bench COMMAND ${root}/bin/dunlin bench --version)
  set_tests_properties(installed.bench PROPERTIES
    PASS_REGULAR_EXPRESSION "^dunlin-bench ${PROJECT_VERSION}\n$" FIXTURES_REQUIRED installed)
endif()

if(TARGET dunlin_mpi_collectives)
  add_test(NAME installed.mpi_collectives COMMAND ${root}/bin/dunlin-mpi-collectives barrier 1)
  set_tests_properties(installed.mpi_collectives PROPERTIES FIXTURES_REQUIRED installed)
endif()

if(PKG_CONFIG AND DUNLIN_APPS)
  add_test(NAME installed.pkg_config
    COMMAND ${here}/pkg_config.sh ${root} ${PROJECT_BINARY_DIR}/examples_pkg_config ${CMAKE_CXX_COMPILER}
            ${examples})
  set_tests_properties(installed.pkg_config PROPERTIES
    FIXTURES_REQUIRED installed RESOURCE_LOCK examples)
endif()

# As a subdirectory of another project it brings the library, and neither tests nor commands. With
# the same flags as here, so that ccache has the library already; and beside this tree instead of in it, because ccache
# names the folders of headers from the folder in which the compiler runs.
cmake_path(GET PROJECT_BINARY_DIR PARENT_PATH beside)
set(as_cached -DDUNLIN_WERROR=${DUNLIN_WERROR}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER})
add_test(NAME installed.subproject
  COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${here}/subproject ${beside}/subproject
          ${same_tools} -DDUNLIN_SOURCE=${PROJECT_SOURCE_DIR} ${as_cached} --test-command user)
set_tests_properties(installed.find_package PROPERTIES RESOURCE_LOCK examples)
