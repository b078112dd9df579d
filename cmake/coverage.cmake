# Which lines of discovery, selection and planning do the tests reach? scripts/check/coverage.py asks. Only these files are
# instrumented, so that everything else is compiled as in a release build and comes out of ccache.
option(GIMBAL_COVERAGE "Instrument src/device, src/discovery and the memory plan for gcov (g++ only; see scripts/check/coverage.py)" OFF)
if(GIMBAL_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "GIMBAL_COVERAGE needs g++, whose gcov reads what the tests leave behind; this is ${CMAKE_CXX_COMPILER_ID}. Set the environment variable CXX=g++ and remove ${CMAKE_BINARY_DIR}.")
  endif()
  set(coverage_flags --coverage -O0 -fprofile-update=atomic)
  target_compile_options(gimbal_device PRIVATE ${coverage_flags})
  target_compile_options(gimbal_discovery PRIVATE ${coverage_flags})
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/program/memory.cpp APPEND PROPERTY COMPILE_OPTIONS ${coverage_flags})
  # Tests of child processes write what was reached there by this function, which they name weakly.
  target_link_options(gimbal_device INTERFACE --coverage -Wl,-u,__gcov_dump)
endif()
