# The sources of a folder as one translation unit, up to twelve at a time: most of what the compiler
# does with a source is to read the headers that its neighbours include, too. Only those below the folders that
# DUNLIN_TOGETHER names; elsewhere each source stands alone, and needs its own #includes. tools/tidy.py does the same
# for clang-tidy. Sources that declare one name are kept apart (together.py), and so are those that have definitions of
# their own, or compile options that their neighbours do not have. EXCEPT: regular expressions of those that stay alone
# for another reason. ALSO: folders besides those of DUNLIN_TOGETHER, for a target that nobody measures.
#
# Not CMake's UNITY_BUILD: its units name their sources by absolute paths, so that a clone in another folder finds none
# of them in ccache.
function(dunlin_together target)
  if(DUNLIN_TOGETHER)
    # At the end of the folder's CMakeLists.txt, which says until then what is peculiar to a source.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL dunlin_put_together ${target} ${ARGN})")
  endif()
endfunction()

function(dunlin_put_together target)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  cmake_parse_arguments(arg "" "" "EXCEPT;ALSO" ${ARGN})
  get_target_property(sources ${target} SOURCES)
  set(folders ${DUNLIN_TOGETHER} ${arg_ALSO})
  list(JOIN folders "|" folders)
  set(in_folders)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(NOT folder MATCHES "^(${folders})(/|$)" OR NOT path MATCHES "\\.cpp$" OR NOT EXISTS ${path}
       OR definitions)
      continue()
    endif()
    if(NOT options)
      set(options "")
    endif()
    string(MAKE_C_IDENTIFIER "${folder}${options}" group)
    list(APPEND in_folders ${group})
    set(options_${group} "${options}")
    list(APPEND in_${group} ${source})
  endforeach()
  list(REMOVE_DUPLICATES in_folders)
  foreach(group IN LISTS in_folders)
    foreach(exception IN LISTS arg_EXCEPT)
      list(FILTER in_${group} EXCLUDE REGEX "/${exception}\\.cpp$")
    endforeach()
    execute_process(
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/together.py 12 ${in_${group}}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      OUTPUT_VARIABLE units OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" units "${units}")
    set(number 0)
    foreach(unit IN LISTS units)
      separate_arguments(unit)
      list(LENGTH unit size)
      if(size GREATER 1)
        set(file ${CMAKE_BINARY_DIR}/together/${target}/${group}_${number}.cpp)
        cmake_path(GET file PARENT_PATH here)
        set(text "// Written by cmake/together.cmake.\n")
        foreach(index IN LISTS unit)
          list(GET in_${group} ${index} source)
          list(REMOVE_ITEM sources ${source})
          cmake_path(ABSOLUTE_PATH source)
          cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${here})
          string(APPEND text "#include \"${source}\"\n")
        endforeach()
        file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options_${group}}")
        list(APPEND sources ${file})
        math(EXPR number "${number} + 1")
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()
