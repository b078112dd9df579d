# A layer is one folder under src/ and one static library. Sources are found, not listed.
include(CheckLinkerFlag)

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
  target_include_directories(gimbal_${name} ${scope} $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
  target_link_libraries(gimbal_${name} ${scope} ${ARGN})
endfunction()

# gimbal_small(<layers...>): layers in which little runs more than once for a model or a token. Text work, the choice of tokens and the
# reference do.
function(gimbal_small)
  # Under sanitizers, optimizing takes longer than it saves but for the work on texts, numbers and files.
  foreach(name IN LISTS ARGN)
    if(GIMBAL_COLD_OPTIMIZATION AND NOT name MATCHES "^(files|tokenizer|grammar|ops|program|conformance|runtime)$")
      target_compile_options(gimbal_${name} PRIVATE ${GIMBAL_COLD_OPTIMIZATION})
    endif()
  endforeach()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(name IN LISTS ARGN)
      target_compile_options(gimbal_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Oz>)
    endforeach()
    file(GLOB busy ${CMAKE_SOURCE_DIR}/src/grammar/constraint.cpp ${CMAKE_SOURCE_DIR}/src/grammar/states.cpp
         ${CMAKE_SOURCE_DIR}/src/tokenizer/bpe.cpp ${CMAKE_SOURCE_DIR}/src/tokenizer/merge_table.cpp
         ${CMAKE_SOURCE_DIR}/src/tokenizer/spm.cpp ${CMAKE_SOURCE_DIR}/src/tokenizer/special_splitter.cpp
         ${CMAKE_SOURCE_DIR}/src/tokenizer/unigram.cpp ${CMAKE_SOURCE_DIR}/src/tokenizer/vocabulary.cpp
         ${CMAKE_SOURCE_DIR}/src/runtime/sampler*.cpp ${CMAKE_SOURCE_DIR}/src/runtime/likelihood.cpp ${CMAKE_SOURCE_DIR}/src/ops/reference*.cpp ${CMAKE_SOURCE_DIR}/src/ops/defs/parts.cpp)
    set_property(SOURCE ${busy} APPEND PROPERTY COMPILE_OPTIONS -O2)
    set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/base/format.cpp ${CMAKE_SOURCE_DIR}/src/base/json.cpp ${CMAKE_SOURCE_DIR}/src/base/json_cache.cpp APPEND PROPERTY COMPILE_OPTIONS -Oz)
  endif()
endfunction()

# gimbal_cold(<target>): of a program's own folder. Nothing there is hot; and the option parser is large.
function(gimbal_cold target)
  target_compile_options(${target} PRIVATE ${GIMBAL_COLD_OPTIMIZATION})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Oz>)
  endif()
endfunction()

# gimbal_program(<name> <folder> <libraries...>): an executable over the whole engine with every enabled backend, of the files in the
# folder itself.
function(gimbal_program name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
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
