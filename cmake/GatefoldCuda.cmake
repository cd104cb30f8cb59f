# What CMake must know before it enables the CUDA language, and where the CUTLASS headers are.
include(CheckLanguage)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
# Machine code for 8.0 and 9.0, and PTX for whatever comes later. A family for one architecture says so itself.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90")
endif()
# NVIDIA's packages put nvcc where no PATH points.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(GATEFOLD_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(GATEFOLD_NVCC)
    set(CMAKE_CUDA_COMPILER ${GATEFOLD_NVCC})
  endif()
endif()
check_language(CUDA)

# Sets GATEFOLD_CUTLASS_INCLUDE, the folder that holds cute/ and cutlass/, or stops and says what to do.
function(gatefold_find_cutlass)
  file(GLOB hints
    ${PROJECT_SOURCE_DIR}/.cache/nvidia-cutlass-*/cutlass_library/source/include
    ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/cutlass_library/source/include)
  if(GATEFOLD_CUTLASS_DIR)
    set(hints ${GATEFOLD_CUTLASS_DIR} ${GATEFOLD_CUTLASS_DIR}/include)
  endif()
  find_path(found cute/tensor.hpp PATHS ${hints} NO_DEFAULT_PATH NO_CACHE)
  if(NOT found)
    message(FATAL_ERROR "gatefold: the CUTLASS headers (cute/tensor.hpp) are not in any of: ${hints}\n"
      "Run scripts/setup, or `pip download` nvidia-cutlass 4.2 and unpack it, and pass "
      "-DGATEFOLD_CUTLASS_DIR=<the folder that holds cute/ and cutlass/>; "
      "or build without the CUDA back end: -DGATEFOLD_CUDA=OFF")
  endif()
  message(STATUS "gatefold: CUTLASS headers in ${found}")
  set(GATEFOLD_CUTLASS_INCLUDE ${found} PARENT_SCOPE)
endfunction()
