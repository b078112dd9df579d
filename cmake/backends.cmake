# A backend = one folder src/backends/<name> + one gimbal_backend(<name> <default> [<other names>]) line. The other names, those that other
# projects give it, serve gates.cmake to suggest the right option.
include(cmake/plugins.cmake)
include(cmake/link_backends.cmake)
set(GIMBAL_BACKEND_LINKAGE plugin CACHE STRING "Of gimbal. plugin: the cpu backend is linked in, the others are files beside it; static: all are linked in")
set_property(CACHE GIMBAL_BACKEND_LINKAGE PROPERTY STRINGS static plugin)
set(GIMBAL_BACKENDS "")
set(GIMBAL_DECLARED_BACKENDS "")  # those that are off, too

macro(gimbal_backend name default)
  list(APPEND GIMBAL_DECLARED_BACKENDS ${name})
  gimbal_gate(${name} ${default})
  if(${gate})
    list(APPEND GIMBAL_BACKENDS ${name})
    add_subdirectory(src/backends/${name})
  endif()
endmacro()

# Called by the backend's own CMakeLists.txt: a static library for tests and workers, and a plugin of the same objects.
function(gimbal_add_backend name)
  add_library(gimbal_backend_${name} STATIC ${ARGN})
  target_compile_definitions(gimbal_backend_${name} PRIVATE GIMBAL_BACKEND_NAME=${name})
  target_link_libraries(gimbal_backend_${name} PRIVATE gimbal_ops)
  gimbal_plugin(${name})
endfunction()

# The backends of a program for everybody: cpu is part of it, so that one file alone runs everywhere; the others come as plugins.
function(gimbal_use_backends target)
  set(linked ${ARGN})
  if(GIMBAL_BACKEND_LINKAGE STREQUAL "plugin")
    list(FILTER linked INCLUDE REGEX "^cpu$")
  endif()
  gimbal_link_backends(${target} ${linked})
  foreach(b ${ARGN})
    if(NOT b IN_LIST linked)
      add_dependencies(${target} gimbal_plugin_${b})
    endif()
  endforeach()
endfunction()
