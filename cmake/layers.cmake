# A layer is one folder under src/ and one static library. Sources are found, not listed.
include(CheckLinkerFlag)

# gimbal_layer(<folder> <libraries...>): src/<folder>/**.{cpp,S} as gimbal_<folder>.
function(gimbal_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp ${CMAKE_SOURCE_DIR}/src/${name}/*.S)
  gimbal_sources_by_features(sources)
  if(sources)
    add_library(gimbal_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(gimbal_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    # Nothing reads floating-point exceptions. Without them, g++ makes vectors of choices between floats; no result changes.
    gimbal_marked(hot "-O2;-fno-trapping-math" ${name})
    gimbal_marked(cold -Oz ${name})
  endif()
  target_include_directories(gimbal_${name} ${scope} $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
  target_link_libraries(gimbal_${name} ${scope} ${ARGN})
endfunction()

# The table of layers, src/layers.txt: GIMBAL_LAYERS, all names from the bottom up, and GIMBAL_LAYER_<name>, what a layer builds on.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/layers.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/layers.txt lines REGEX "^[a-z]+:")
set(GIMBAL_LAYERS "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([a-z]+):([a-z_/. ]*)[|]")
    message(FATAL_ERROR "src/layers.txt: expected 'name: layers that it builds on | what it holds', found '${line}'")
  endif()
  set(name ${CMAKE_MATCH_1})
  separate_arguments(GIMBAL_LAYER_${name} UNIX_COMMAND "${CMAKE_MATCH_2}")
  list(APPEND GIMBAL_LAYERS ${name})
endforeach()

# gimbal_layers(<names...>): every layer of the table but these, and but those with a CMakeLists.txt of their own.
function(gimbal_layers)
  foreach(name IN LISTS GIMBAL_LAYERS)
    if(NOT name IN_LIST ARGN AND NOT name STREQUAL "backends" AND NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${name}/CMakeLists.txt)
      list(TRANSFORM GIMBAL_LAYER_${name} PREPEND gimbal_ OUTPUT_VARIABLE libraries)
      gimbal_layer(${name} ${libraries})
      if(NOT name MATCHES "^(base|tensor)$")
        gimbal_small(${name})
      endif()
    endif()
  endforeach()
endfunction()

# gimbal_apart(<layer> <names...>): these sources are compiled alone where the rest of the layer is one file.
function(gimbal_apart layer)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/src/${layer}/ OUTPUT_VARIABLE sources)
  list(TRANSFORM sources APPEND .cpp)
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# gimbal_layer_closure(<out> <name>): all layers below this one, and the single files that it may include.
function(gimbal_layer_closure out name)
  set(found ${GIMBAL_LAYER_${name}})
  foreach(below IN LISTS GIMBAL_LAYER_${name})
    gimbal_layer_closure(more ${below})
    list(APPEND found ${more})
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# gimbal_small(<layer>): compiled for size, except sources whose first line starts with "// hot:". Little of such a layer runs more than once
# for a model or a token.
function(gimbal_small name)
  # Under sanitizers, optimizing takes longer than it saves, except for work on texts, numbers and files.
  if(GIMBAL_COLD_OPTIMIZATION AND NOT name MATCHES "^(files|tokenizer|grammar|ops|program|conformance|runtime)$")
    target_compile_options(gimbal_${name} PRIVATE ${GIMBAL_COLD_OPTIMIZATION})
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(gimbal_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Oz>)
  endif()
endfunction()

# gimbal_marked(<mark> <option> <layer>): the sources of a layer whose first line starts with "// <mark>:" are compiled with the option.
function(gimbal_marked mark option name)
  file(GLOB_RECURSE sources ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  string(LENGTH "// ${mark}:" length)
  foreach(source IN LISTS sources)
    file(READ ${source} start LIMIT ${length})
    if(start MATCHES "^// ${mark}:")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${option})
    endif()
  endforeach()
endfunction()

# gimbal_cold(<target>): of a program's own folder. Nothing there is hot; and the option parser is large.
function(gimbal_cold target)
  target_compile_options(${target} PRIVATE ${GIMBAL_COLD_OPTIMIZATION})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Oz>)
  endif()
endfunction()

# gimbal_program(<name> <folder> <libraries...>): an executable over the whole engine with every enabled backend, of the files in the
# folder itself, without commands of absent features.
function(gimbal_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/${folder}/absent/*.cpp)
  gimbal_sources_by_features(sources)
  gimbal_commands_by_features(sources)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARGN} gimbal_engine)
  gimbal_use_backends(${name} ${GIMBAL_BACKENDS})
  gimbal_cold(${name})
  if(NOT APPLE)
    target_link_options(${name} PRIVATE -Wl,--build-id)  # what was found out with one build is not believed of another
  endif()
  gimbal_standalone(${name})
endfunction()

# gimbal_standalone(<target>): starts on machines that have nothing but the C library; without what it does not use.
function(gimbal_standalone target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-O2)
    # The tables of kernels are full of pointers: packed, their relocations take 2 kB in place of 110. Needs the C library that
    # Debian 12 has, 2.36, which the program needs anyway.
    check_linker_flag(CXX -Wl,-z,pack-relative-relocs GIMBAL_PACKS_RELOCATIONS)
    if(GIMBAL_PACKS_RELOCATIONS)
      target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
    endif()
  endif()
endfunction()
