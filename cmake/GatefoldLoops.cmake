# Adds the CPU's loops to a target: one source for each instruction set, compiled with it and called where the machine
# has it. They lie in `folder`.
function(gatefold_add_loops target folder)
  target_sources(${target} PRIVATE ${folder}/kernels.cpp ${folder}/portable.cpp)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    return()
  endif()
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  set(options_avx2 ${avx2})
  set(options_avx512 ${avx512})
  set(options_avx512_bf16 ${avx512} -mavx512bf16)
  set(options_amx_bf16 ${avx512} -mamx-tile -mamx-bf16)
  set(options_amx_parts ${options_amx_bf16})
  foreach(name IN ITEMS avx2 avx512 avx512_bf16 amx_bf16 amx_parts)
    target_sources(${target} PRIVATE ${folder}/${name}.cpp)
    # GCC 12 takes its own _mm512_undefined_ps() for a mistake.
    set_source_files_properties(${folder}/${name}.cpp TARGET_DIRECTORY ${target} PROPERTIES
      COMPILE_OPTIONS "${options_${name}};$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
  endforeach()
endfunction()
