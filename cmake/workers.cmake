# gimbal-worker-<name>: a program with one backend, linked statically, and nothing that chooses. The same text for every backend
# (src/apps/worker); its main() is made from main.cpp.in.
option(GIMBAL_WORKERS "Build gimbal-worker-<name> for each backend that is on; without it, by their targets only" OFF)

file(GLOB worker_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/apps/worker/*.cpp)
add_library(gimbal_worker STATIC EXCLUDE_FROM_ALL ${worker_sources})
target_link_libraries(gimbal_worker PUBLIC gimbal_apps)
gimbal_cold(gimbal_worker)
target_compile_definitions(gimbal_worker PRIVATE GIMBAL_VERSION="${PROJECT_VERSION}")

function(gimbal_worker name)
  set(target gimbal-worker-${name})
  string(COMPARE NOTEQUAL ${name} cpu has_gpus)
  string(REPLACE 0 false has_gpus ${has_gpus})
  string(REPLACE 1 true has_gpus ${has_gpus})
  configure_file(${CMAKE_SOURCE_DIR}/src/apps/worker/main.cpp.in ${CMAKE_BINARY_DIR}/workers/${name}.cpp @ONLY)
  add_executable(${target} ${CMAKE_BINARY_DIR}/workers/${name}.cpp)
  target_link_libraries(${target} PRIVATE gimbal_worker gimbal_backend_${name})
  gimbal_standalone(${target})
  if(NOT GIMBAL_WORKERS AND NOT BUILD_TESTING)  # tests look at them
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

set(GIMBAL_WORKER_TARGETS "")
foreach(name IN LISTS GIMBAL_BACKENDS)
  if(NOT name MATCHES "^(emulator|toy)$")  # not for users
    gimbal_worker(${name})
    list(APPEND GIMBAL_WORKER_TARGETS gimbal-worker-${name})
  endif()
endforeach()
