# Compiles through ccache where it is installed. Paths below the sources count as relative ones, so that clones of the
# repository share what they have compiled.
find_program(GATEFOLD_CCACHE ccache)
if(GATEFOLD_CCACHE)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH gatefold_sources)
  foreach(language IN ITEMS C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${gatefold_sources} CCACHE_NOHASHDIR=true ${GATEFOLD_CCACHE})
    endif()
  endforeach()
endif()
