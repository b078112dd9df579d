# Which lines of these sources do the tests reach? scripts/check/coverage.py names them and asks. Everything else is compiled as in a
# release build and comes out of ccache.
set(GIMBAL_COVERAGE "" CACHE STRING "Sources that are instrumented for gcov (g++ only; see scripts/check/coverage.py)")
if(GIMBAL_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "GIMBAL_COVERAGE needs g++, whose gcov reads what the tests leave behind; this is ${CMAKE_CXX_COMPILER_ID}. Set the environment variable CXX=g++ and remove ${CMAKE_BINARY_DIR}.")
  endif()
  list(TRANSFORM GIMBAL_COVERAGE PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE instrumented)
  # With options of its own, a source is compiled alone. gcov counts by object.
  set_property(SOURCE ${instrumented} APPEND PROPERTY COMPILE_OPTIONS --coverage -O0 -fprofile-update=atomic)
  # Tests of child processes write what was reached there by this function, which they name weakly.
  target_link_options(gimbal_device INTERFACE --coverage -Wl,-u,__gcov_dump)
endif()
