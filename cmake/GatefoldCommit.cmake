# gatefold_commit: who links it includes commit.hpp, with the commit that the sources stand at, for what is written into
# result files.
include_guard(GLOBAL)

set(commit_header ${PROJECT_BINARY_DIR}/generated/commit.hpp)
add_custom_target(gatefold_write_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${commit_header}
    -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake
  BYPRODUCTS ${commit_header}
  VERBATIM)
add_library(gatefold_commit INTERFACE)
target_include_directories(gatefold_commit INTERFACE ${PROJECT_BINARY_DIR}/generated)
add_dependencies(gatefold_commit gatefold_write_commit)
