# Compiles through ccache where it is installed.
find_program(GATEFOLD_CCACHE ccache)
if(GATEFOLD_CCACHE)
  foreach(language IN ITEMS C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/ccache.sh)
    endif()
  endforeach()
endif()
