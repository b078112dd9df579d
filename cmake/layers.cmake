# A layer is one folder under src/ and one static library. Sources are found, not listed.

# gimbal_layer(<folder> <libraries...>): src/<folder>/**.{cpp,S} as gimbal_<folder>.
function(gimbal_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp ${CMAKE_SOURCE_DIR}/src/${name}/*.S)
  if(sources)
    add_library(gimbal_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(gimbal_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(gimbal_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(gimbal_${name} ${scope} ${ARGN})
endfunction()

# gimbal_program(<name> <folder>): an executable over the whole engine with every enabled backend.
function(gimbal_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE gimbal_runtime)
  gimbal_link_backends(${name} ${GIMBAL_BACKENDS})
  target_compile_options(${name} PRIVATE ${GIMBAL_COLD_OPTIMIZATION})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    # Nothing in a program's own folder is hot; and the option parser is large.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Os>)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()
