# The Metal tests where there is no Metal: the backend's Objective-C++ files, compiled by clang against own declarations
# (stubs/), over a pretended Metal (fake/), which runs the very texts that a Mac would compile, as C++ (shim/).
# On Apple's systems metal_kernels_test and metal_models_test use the system's own Metal.
set(metal ${CMAKE_CURRENT_LIST_DIR})
set(metal_missing "")
find_program(GIMBAL_OBJCXX NAMES clang++-19 clang++-16 clang++-15 clang++-14 clang++)
file(GLOB objc_folders /usr/lib/gcc/*/*)
list(SORT objc_folders COMPARE NATURAL ORDER DESCENDING)
find_library(GIMBAL_OBJC_LIBRARY NAMES objc PATHS ${objc_folders})
foreach(tool glslc spirv-opt spirv-val spirv-cross)
  find_program(GIMBAL_TOOL_${tool} ${tool})
  if(NOT GIMBAL_TOOL_${tool})
    string(APPEND metal_missing "${tool}, ")
  endif()
endforeach()
if(NOT GIMBAL_OBJCXX OR NOT GIMBAL_OBJC_LIBRARY)
  string(APPEND metal_missing "clang and GCC's libobjc, ")
endif()
if(metal_missing)
  string(REGEX REPLACE ", $" " cannot be found (scripts/setup.sh gpu)" metal_missing "${metal_missing}")
  message(STATUS "Metal is not tested: ${metal_missing}")
  return()
endif()

# metal_object(<list of objects> <source> <name> <flags...>): compiles with clang, whatever compiles the rest.
function(metal_object out source name)
  set(object ${CMAKE_BINARY_DIR}/metal_objects/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${GIMBAL_CCACHE} ${GIMBAL_OBJCXX} -std=c++20 -O2 -fPIC -ffp-contract=off -fno-math-errno -fvisibility=hidden
            -Wall -Wextra -Werror -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/tests ${ARGN}
            -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMENT "clang: ${name}" VERBATIM)
  set(${out} ${${out}} ${object} PARENT_SCOPE)
endfunction()

# The dialect of Objective-C that GCC's runtime runs.
set(metal_dialect -fobjc-runtime=gcc -I${metal}/stubs)
# Unsuffixed numbers are f32 in Metal; the attribute that forbids optimizing is what makes sums exact there, and only slow here.
set(metal_language -Xclang -cl-single-precision-constant -Doptnone=always_inline -isystem ${metal}/shim
    -Wno-unknown-attributes -Wno-unused-variable)

# metal_texts(<target> <prefix> <texts...>): adds to the target the texts (files), compiled through the shim, as the function
# <prefix>_texts().
function(metal_texts target prefix)
  set(objects "")
  set(pairs "")
  set(folder ${CMAKE_BINARY_DIR}/metal_shimmed/${prefix})
  file(MAKE_DIRECTORY ${folder} ${CMAKE_BINARY_DIR}/metal_objects)
  foreach(text IN LISTS ARGN)
    get_filename_component(name ${text} NAME)
    set(name ${prefix}_${name})
    add_custom_command(OUTPUT ${folder}/${name}.cpp
      COMMAND Python3::Interpreter ${metal}/shim/make_shimmed.py kernel ${name} ${text} ${folder}/${name}.cpp
      DEPENDS ${metal}/shim/make_shimmed.py ${text} VERBATIM)
    metal_object(objects ${folder}/${name}.cpp ${name} ${metal_language})
    list(APPEND pairs ${name}=${text})
  endforeach()
  add_custom_command(OUTPUT ${folder}/table.cpp
    COMMAND Python3::Interpreter ${metal}/shim/make_shimmed.py table ${prefix}_texts ${folder}/table.cpp ${pairs}
    DEPENDS ${metal}/shim/make_shimmed.py ${ARGN} VERBATIM)
  target_sources(${target} PRIVATE ${folder}/table.cpp ${objects})
endfunction()

# metal_module_texts(<out> <kernels.def>): the files that gimbal_gpu_modules(... msl <kernels.def>) makes.
function(metal_module_texts out definition)
  gpu_read(${definition})
  list(TRANSFORM gpu_names PREPEND ${gpu_folder}/msl/)
  set(${out} ${gpu_names} PARENT_SCOPE)
endfunction()

set(objects "")
foreach(file memory programs queue runtime)
  metal_object(objects ${CMAKE_SOURCE_DIR}/src/backends/metal/${file}.mm runtime_${file} ${metal_dialect})
endforeach()
foreach(file foundation device commands)
  metal_object(objects ${metal}/fake/${file}.mm fake_${file} ${metal_dialect})
endforeach()
add_library(gimbal_backend_metal_pretended STATIC EXCLUDE_FROM_ALL ${metal}/fake/backend.cpp ${metal}/shim/barrier.cpp ${objects})
target_include_directories(gimbal_backend_metal_pretended PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(gimbal_backend_metal_pretended PUBLIC gimbal_gpu gimbal_emulator_runtime gimbal_base ${GIMBAL_OBJC_LIBRARY})
gimbal_gpu_modules(gimbal_backend_metal_pretended msl)
metal_module_texts(texts ${GIMBAL_GPU_DEF})
metal_texts(gimbal_backend_metal_pretended engine ${texts})
gimbal_gpu_modules(gimbal_backend_metal_pretended msl ${GIMBAL_GPU_TENSORS} tensor_ packed)
metal_module_texts(texts ${GIMBAL_GPU_TENSORS})
metal_texts(gimbal_backend_metal_pretended tensor ${texts})
set(metal_is_pretended TRUE)
