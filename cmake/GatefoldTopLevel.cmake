# What Gatefold sets when it is the project that is built, and leaves alone inside another one.
option(BUILD_SHARED_LIBS "Build a shared library" ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

include(GatefoldCcache)

# An installed tool finds the library beside it, wherever the prefix is moved to.
if(NOT DEFINED CMAKE_INSTALL_RPATH)
  file(RELATIVE_PATH library_from_tool ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set(CMAKE_INSTALL_RPATH $ORIGIN/${library_from_tool})
endif()
