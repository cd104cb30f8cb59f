# Writes OUTPUT, a header with the commit that SOURCE stands at; "unknown" outside git. The file is touched only when
# the commit changes, so that nothing else is built again.
set(commit "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE result ERROR_QUIET)
  if(result EQUAL 0)
    set(commit "${described}")
  endif()
endif()
set(header "#pragma once\n\n#define GATEFOLD_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT header STREQUAL old)
  file(WRITE ${OUTPUT} "${header}")
endif()
