# The installed package: headers, library, and what find_package and pkg-config read.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gatefold)

install(TARGETS gatefold EXPORT gatefold
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gatefold DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT gatefold NAMESPACE gatefold:: FILE gatefoldTargets.cmake DESTINATION ${package_dir})

# A shared library brings its dependencies along; a static one leaves them to whoever links it.
get_target_property(library_type gatefold TYPE)
set(GATEFOLD_DEPENDENCIES "")
set(GATEFOLD_PRIVATE_LIBS "-lstdc++ -lm")
if(library_type STREQUAL "STATIC_LIBRARY")
  if(OpenMP_CXX_FOUND)
    string(APPEND GATEFOLD_DEPENDENCIES "find_dependency(OpenMP COMPONENTS CXX)\n")
  endif()
  if(GATEFOLD_CUDA)
    string(APPEND GATEFOLD_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
  endif()
endif()
if(OpenMP_CXX_FOUND)
  string(PREPEND GATEFOLD_PRIVATE_LIBS "${OpenMP_CXX_FLAGS} ")
endif()
if(GATEFOLD_CUDA)
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  string(PREPEND GATEFOLD_PRIVATE_LIBS "${cudart} -ldl -lrt -lpthread ")
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gatefoldConfig.cmake.in
  ${PROJECT_BINARY_DIR}/gatefoldConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gatefoldConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gatefoldConfig.cmake ${PROJECT_BINARY_DIR}/gatefoldConfigVersion.cmake
  DESTINATION ${package_dir})

# The prefix is relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH GATEFOLD_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/gatefold.pc.in ${PROJECT_BINARY_DIR}/gatefold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gatefold.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
