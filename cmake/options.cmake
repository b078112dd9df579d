# Compiler flags and switches that hold for every target.
option(GIMBAL_SANITIZE_ADDRESS "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(GIMBAL_SANITIZE_THREAD "Build with ThreadSanitizer" OFF)
set(merge_tests OFF)
if(DEFINED ENV{GIMBAL_MERGE_TESTS})  # for `make test`, which configures by itself
  set(merge_tests $ENV{GIMBAL_MERGE_TESTS})
endif()
set(GIMBAL_MERGE_TESTS ${merge_tests} CACHE STRING "Tests that are compiled together (tests/merged.cmake): ON, OFF or threads, those that CI runs under tsan")
option(GIMBAL_PYTHON "Build the Python package in build/.../python (needs python3-dev)" OFF)
option(GIMBAL_FUZZ "Build the libFuzzer targets (clang only)" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Only kernels are hot, and they say what they want; the rest is smaller this way.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(GIMBAL_CCACHE ccache)
if(GIMBAL_CCACHE)
  # Without these words it leaves alone what uses a precompiled header (the tests do).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${GIMBAL_CCACHE})
endif()

# -ffp-contract=off: the order and rounding of every sum is part of an op's definition, so the compiler may
# not fuse a multiply and an add on one machine and not on another. Kernels ask for an FMA by name.
add_compile_options(-Wall -Wextra -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations)  # in g++ 12's own stable_sort
endif()
# One section per function, so that the linker can leave out what a program does not use.
add_compile_options(-ffunction-sections -fdata-sections)

# Most of the time of a compilation goes into headers that a file shares with its neighbours, so a layer is compiled as one file. Debug builds
# compile file by file: there, one change must compile quickly. `make check-layers` finds what a file uses and does not include.
if(NOT DEFINED CMAKE_UNITY_BUILD AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(CMAKE_UNITY_BUILD ON)
endif()
if(CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)  # all of a layer
  # A type of the second file may have members that only this file knows.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

set(GIMBAL_KERNEL_OPTIMIZATION -O3)
if(GIMBAL_SANITIZE_ADDRESS OR GIMBAL_SANITIZE_THREAD)
  # Instrumented code is slow to compile when it is also inlined and unrolled.
  set(GIMBAL_KERNEL_OPTIMIZATION -O1)
  set(GIMBAL_COLD_OPTIMIZATION -O0)  # half the time that -O1 takes to compile: commands, and most layers
  add_compile_options(-O1)
endif()
if(GIMBAL_SANITIZE_ADDRESS)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # g++ 12 needs minutes for some files without it
    add_compile_options(-fno-var-tracking)
  else()
    add_compile_definitions(__SANITIZE_ADDRESS__)  # as g++ does
    add_compile_options(-fsanitize-address-use-after-return=never)  # as g++'s; it takes a tenth of the time, compiling and running
  endif()
endif()
if(GIMBAL_SANITIZE_THREAD)
  add_compile_options(-fsanitize=thread -g1)
  add_link_options(-fsanitize=thread)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_definitions(__SANITIZE_THREAD__)
  endif()
endif()
if((GIMBAL_SANITIZE_ADDRESS OR GIMBAL_SANITIZE_THREAD) AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=lld)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # ccache asks for it where a header is precompiled
endif()
if(GIMBAL_FUZZ AND NOT (GIMBAL_SANITIZE_ADDRESS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))
  message(FATAL_ERROR "GIMBAL_FUZZ needs clang and GIMBAL_SANITIZE_ADDRESS: use the preset 'asan'")
endif()

# Debian has PCRE2 as a static library; the regex work of the tokenizers must not add a run-time dependency.
find_library(GIMBAL_PCRE2_LIBRARY libpcre2-8.a REQUIRED)
