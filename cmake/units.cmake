# The sources of a folder, by name. A folder's CMakeLists.txt calls
#
#     dunlin_units(UNIT agreement.cpp founding.cpp  UNIT views.cpp)
#
# once or, under conditions, several times. Where CMAKE_UNITY_BUILD is on, the sources of a UNIT are one translation
# unit, so no two of them may declare one name at namespace scope; elsewhere each source is compiled alone.
function(dunlin_units)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  foreach(word IN LISTS ARGN)
    if(NOT word STREQUAL UNIT)
      cmake_path(ABSOLUTE_PATH word)
    endif()
    set_property(GLOBAL APPEND PROPERTY "dunlin_units ${folder}" ${word})
  endforeach()
endfunction()

# Adds the sources of folders, named from the project's root, to a target. In place of a SOURCE, the file of the same
# path in PLACE is taken.
function(dunlin_add_units target) # FOLDER... [IN PLACE SOURCE...]
  cmake_parse_arguments(arg "" "" "IN" ${ARGN})
  list(POP_FRONT arg_IN place)
  foreach(folder IN LISTS arg_UNPARSED_ARGUMENTS)
    get_property(words GLOBAL PROPERTY "dunlin_units ${folder}")
    if(NOT words)
      message(FATAL_ERROR "${folder} has no CMakeLists.txt that calls dunlin_units()")
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" unit)
    set(number 0)
    foreach(word IN LISTS words)
      if(word STREQUAL UNIT)
        math(EXPR number "${number} + 1")
      else()
        if(word IN_LIST arg_IN)
          cmake_path(RELATIVE_PATH word BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
          cmake_path(ABSOLUTE_PATH word BASE_DIRECTORY ${place})
        endif()
        target_sources(${target} PRIVATE ${word})
        set_source_files_properties(${word} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${unit}_${number})
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
