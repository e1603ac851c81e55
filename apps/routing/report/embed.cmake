# The page of `dunlin routing --report`, with its styles and scripts, as a C++ source: sets
# `report_source` to its path.
set(report_folder ${CMAKE_CURRENT_LIST_DIR})

function(read_part part variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report_folder}/${part})
  file(READ ${report_folder}/${part} content)
  set(${variable} "${content}" PARENT_SCOPE)
endfunction()

read_part(page.html page)
read_part(style.css style)
set(script "")
foreach(part draw map charts main)
  read_part(${part}.js content)
  string(APPEND script "${content}")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
set(report_source ${CMAKE_BINARY_DIR}/generated/report_template.cpp)
configure_file(${report_folder}/template.cpp.in ${report_source} @ONLY)
