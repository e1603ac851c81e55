# find_package(Dunlin 0.3) and pkg-config for whoever uses the installed library.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Dunlin)
set_target_properties(dunlin dunlin_client PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS dunlin dunlin_client EXPORT DunlinTargets)
install(DIRECTORY include/dunlin TYPE INCLUDE)
if(DUNLIN_APPS)
  install(TARGETS dunlin_command)
  # Those that were built, beside dunlin: it looks for dunlin-bench there, and that for the others.
  foreach(target dunlin_bench_command dunlin_mpi_collectives dunlin_mpi_one_sided dunlin_fast_dds)
    if(TARGET ${target})
      install(TARGETS ${target} OPTIONAL)
    endif()
  endforeach()
endif()
install(EXPORT DunlinTargets NAMESPACE dunlin:: DESTINATION ${package_dir})

configure_package_config_file(cmake/DunlinConfig.cmake.in DunlinConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(DunlinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/DunlinConfig.cmake ${PROJECT_BINARY_DIR}/DunlinConfigVersion.cmake
        DESTINATION ${package_dir})

# Relative to the file itself, so that the installed tree may be moved.
file(RELATIVE_PATH DUNLIN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(DUNLIN_RENDEZVOUS)
  set(DUNLIN_PC_LIBS " -lssl -lcrypto")
endif()
if(DUNLIN_RDMA)
  string(APPEND DUNLIN_PC_LIBS " -lrdmacm -libverbs")
endif()
if(DUNLIN_OFI OR DUNLIN_PMIX)
  string(APPEND DUNLIN_PC_LIBS " -ldl")
endif()
configure_file(cmake/dunlin.pc.in dunlin.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dunlin.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
