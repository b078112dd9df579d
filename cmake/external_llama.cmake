# C++ inference libraries at configure time: GIMBAL_EXTERNAL_LLAMA runs the same search and analysis as `gimbal find-libraries`, prints
# what it found, and writes bitnet_cpp.h with BITNET_CPP_HAS_CUDA, BITNET_CPP_HAS_BITNET_LIB and so on, each 0 or 1, by the libraries'
# symbols. The target gimbal_external_llama has that header and, for static libraries, what they need of the system. Off by
# default: a build does not depend on what lies around. gimbal itself opens such a library when it runs, in a child process.
set(GIMBAL_EXTERNAL_LLAMA off CACHE STRING "C++ inference libraries to find at configure time: auto, off, or the PATH of a library, folder or checkout")
include(${CMAKE_CURRENT_LIST_DIR}/platform_libraries.cmake)

function(gimbal_find_external_llama)
  add_library(gimbal_external_llama INTERFACE)
  set(folder ${CMAKE_BINARY_DIR}/generated/external_llama)
  string(TOUPPER "${GIMBAL_EXTERNAL_LLAMA}" wish)
  if(wish MATCHES "^(OFF|NO|FALSE|0|)$")
    file(CONFIGURE OUTPUT ${folder}/bitnet_cpp.h CONTENT [[
// Written by the configure step: GIMBAL_EXTERNAL_LLAMA is off.
#pragma once
#define BITNET_CPP_FOUND 0
#define BITNET_CPP_HAS_BITNET_LIB 0
#define BITNET_CPP_HAS_LLAMA_LIB 0
#define BITNET_CPP_HAS_GGML_LIB 0
#define BITNET_CPP_HAS_CUDA 0
#define BITNET_CPP_HAS_HIP 0
#define BITNET_CPP_HAS_VULKAN 0
#define BITNET_CPP_HAS_METAL 0
#define BITNET_CPP_HAS_OPENCL 0
#define BITNET_CPP_BITNET_PATH ""
#define BITNET_CPP_LLAMA_PATH ""
#define BITNET_CPP_GGML_PATH ""
]])
    target_include_directories(gimbal_external_llama INTERFACE ${folder})
    return()
  endif()
  if(CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "GIMBAL_EXTERNAL_LLAMA=${GIMBAL_EXTERNAL_LLAMA}: libraries for another machine cannot be searched for at configure "
                        "time. Set it to off, and give the library when gimbal runs.")
  endif()
  set(where auto)
  if(NOT wish STREQUAL "AUTO")
    get_filename_component(where "${GIMBAL_EXTERNAL_LLAMA}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
  endif()
  gimbal_build_library_search(${CMAKE_BINARY_DIR}/library_search program)
  execute_process(COMMAND ${program} ${where} ${folder}/bitnet_cpp.h RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "GIMBAL_EXTERNAL_LLAMA=${GIMBAL_EXTERNAL_LLAMA}: ${err}")
  endif()
  string(REPLACE ";" "\\;" lines "${out}")
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
  target_include_directories(gimbal_external_llama INTERFACE ${folder})
  file(STRINGS ${folder}/bitnet_cpp.h static REGEX "_PATH \".*\\.a\"")
  if(static)
    gimbal_platform_libraries(${CMAKE_SYSTEM_NAME} libraries)
    target_link_libraries(gimbal_external_llama INTERFACE ${libraries})
  endif()
endfunction()

# Builds src/apps/library_search in a folder of its own; a later configure step compiles only what changed.
function(gimbal_build_library_search folder out)
  set(options -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})
  if(GIMBAL_CCACHE)
    list(APPEND options -DCMAKE_CXX_COMPILER_LAUNCHER=${GIMBAL_CCACHE})
  endif()
  message(STATUS "GIMBAL_EXTERNAL_LLAMA: building the search for C++ inference libraries")
  foreach(step "-S;${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src/apps/library_search;-B;${folder};-G;${CMAKE_GENERATOR};${options}" "--build;${folder}")
    execute_process(COMMAND ${CMAKE_COMMAND} ${step} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "The search for C++ inference libraries cannot be built:\n${said}")
    endif()
  endforeach()
  set(${out} ${folder}/library_search PARENT_SCOPE)
endfunction()
