# Each program here but the control must be refused by the compiler, with the sentence that its
# first line quotes; by every compiler that is at hand.
find_program(DUNLIN_OTHER_COMPILER NAMES clang++ DOC "A second compiler to hear the refusals of")
file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
set(compilers ${CMAKE_CXX_COMPILER})
if(DUNLIN_OTHER_COMPILER AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND compilers ${DUNLIN_OTHER_COMPILER})
endif()

foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  foreach(compiler ${compilers})
    get_filename_component(compiler_name ${compiler} NAME)
    add_test(NAME compile_fail.${name}.${compiler_name}
      COMMAND ${CMAKE_COMMAND} -DCOMPILER=${compiler} -DPROGRAM=${program}
              -DINCLUDE=${PROJECT_SOURCE_DIR}/include -P ${CMAKE_CURRENT_LIST_DIR}/check.cmake)
  endforeach()
endforeach()
