# The settings that every CUDA target shares: the families of src/cuda, tests/cuda and bench/cuda.
find_package(CUDAToolkit REQUIRED GLOBAL)

# -std is spelled out: CMake 3.25 does not know that nvcc speaks C++20. -lineinfo changes no instruction, but makes
# objects 2.8 times as large and takes a minute to compress where there are many kernels: it is an option. Size
# compression makes the device code of the SIMT products 0.7 MB instead of 10.5.
add_library(gatefold_cuda_settings INTERFACE)
target_compile_options(gatefold_cuda_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --compress-mode=size $<$<BOOL:${GATEFOLD_LINE_INFO}>:-lineinfo> --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${GATEFOLD_WERROR}>>:-Werror=all-warnings -Xcompiler=-Werror>)
target_link_libraries(gatefold_cuda_settings INTERFACE gatefold_settings CUDA::cudart_static)

# One family of kernels: an object library whose objects go into gatefold, shared or static. ptxas's report of each
# object (registers, shared memory, spills) is kept beside it as <object>.ptxas; a test reads them.
#   gatefold_cuda_family(<name> [ARCHITECTURES <list>] SOURCES <files>)
function(gatefold_cuda_family name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARCHITECTURES;SOURCES")
  add_library(${name} OBJECT ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PRIVATE ${GATEFOLD_CUTLASS_INCLUDE})
  target_link_libraries(${name} PRIVATE gatefold_cuda_settings)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set_target_properties(${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    CUDA_COMPILER_LAUNCHER "${launcher}")
  if(arg_ARCHITECTURES)
    set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${arg_ARCHITECTURES}")
  endif()
  target_sources(gatefold PRIVATE $<TARGET_OBJECTS:${name}>)
  set_property(GLOBAL APPEND PROPERTY gatefold_cuda_families ${name})
endfunction()
