# The settings that every target of the project shares.
add_library(gatefold_settings INTERFACE)
target_compile_features(gatefold_settings INTERFACE cxx_std_20)
target_compile_options(gatefold_settings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-unknown-pragmas>
  $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>>  # false alarms in GCC 12's std::string
  $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<BOOL:${GATEFOLD_WERROR}>>:-Werror>)
