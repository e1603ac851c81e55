# Tests of the source itself: headers, refusals at compile time, the documents' examples, lint.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(CLANGXX clang++)

set(tools ${PROJECT_SOURCE_DIR}/tools)
set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -Wall -Wextra -Wpedantic -Werror -pthread
    -I${PROJECT_SOURCE_DIR}/include)

# Each public header compiles alone, and twice; and by clang, all of them together.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/include/*.hpp)
add_test(NAME header.alone
  COMMAND Python3::Interpreter ${tools}/headers_alone.py ${PROJECT_SOURCE_DIR}/include -- ${compile})
foreach(header IN LISTS headers)
  list(APPEND together -include ${header})
endforeach()
if(CLANGXX)
  list(SUBLIST compile 1 -1 flags)
  add_test(NAME header.together.clang
    COMMAND ${CLANGXX} ${flags} -fsyntax-only ${together} -x c++ /dev/null)
endif()

# Mistakes that the compiler must refuse, with a sentence: tests/<layer>/compile_fail/*.cpp.
file(GLOB_RECURSE mistakes CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */compile_fail/*.cpp)
function(refuse suffix) # COMPILER FLAG...
  set(check Python3::Interpreter ${tools}/must_not_compile.py)
  list(TRANSFORM mistakes PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_test(NAME "refused.mistakes${suffix}" COMMAND ${check} ${mistakes} -- ${ARGN})
  add_test(NAME "refused.not_without_mistakes${suffix}"
    COMMAND ${check} --without-mistakes ${mistakes} -- ${ARGN})
endfunction()
refuse("" ${compile})
if(CLANGXX AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(SUBLIST compile 1 -1 flags)
  refuse(.clang ${CLANGXX} ${flags})
endif()

# The examples in the documents: one test a page. They may join groups of the same name: one page
# at a time.
file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/*.md ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*/*.md)
# What dunlin.pc names, too.
set(libraries $<TARGET_FILE:dunlin> $<$<BOOL:${DUNLIN_RENDEZVOUS}>:-lssl> $<$<BOOL:${DUNLIN_RENDEZVOUS}>:-lcrypto>
              $<$<BOOL:${DUNLIN_RDMA}>:-lrdmacm> $<$<BOOL:${DUNLIN_RDMA}>:-libverbs> -ldl)
list(TRANSFORM libraries PREPEND --library=)
foreach(page IN LISTS pages)
  add_test(NAME "docs.${page}"
    COMMAND Python3::Interpreter ${tools}/doc_examples.py ${PROJECT_SOURCE_DIR}/${page} ${libraries} -- ${compile})
  set_tests_properties("docs.${page}" PROPERTIES RESOURCE_LOCK examples TIMEOUT 600)
endforeach()
add_test(NAME source.layers COMMAND ${tools}/layers.sh)
file(GLOB faults CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fault_injection/*.toml)
add_test(NAME source.faults
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/fault_injection/faults.py check ${faults})
add_test(NAME docs.links COMMAND Python3::Interpreter ${tools}/doc_links.py ${PROJECT_SOURCE_DIR})
add_test(NAME docs.lines COMMAND Python3::Interpreter ${tools}/doc_lines.py ${PROJECT_SOURCE_DIR})
add_test(NAME docs.invariants
         COMMAND Python3::Interpreter ${tools}/check_invariants.py ${PROJECT_SOURCE_DIR})
add_test(NAME docs.counters
         COMMAND Python3::Interpreter ${tools}/check_counters.py ${PROJECT_SOURCE_DIR})
# Whoever uses the library names its version.
add_test(NAME docs.version COMMAND sh -c
  "! grep -L 'find_package(Dunlin ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ' README.md examples/CMakeLists.txt | grep ."
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
foreach(tool check_counters check_invariants costs doc_examples headers_alone must_not_compile outcome)
  add_test(NAME tools.${tool} COMMAND Python3::Interpreter -m unittest ${tool}_test
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/tools)
endforeach()

# The longest are content with what the other tests leave of the processors.
set(longest tidy_changed bench)
if(DUNLIN_ALL_TESTS)  # compiles the benchmarks
  set(longest tidy)
endif()
foreach(part format shell ${longest})
  add_test(NAME lint.${part} COMMAND nice -n 19 ${tools}/lint.sh ${part})
  set_tests_properties(lint.${part} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 4400)
endforeach()
list(TRANSFORM longest PREPEND lint.)
set_tests_properties(${longest} PROPERTIES COST 10000)
