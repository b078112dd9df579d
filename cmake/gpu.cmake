# One kernel text, every GPU: what a backend's CMakeLists.txt calls to have the kernels of src/gpu/kernels.def in
# its own language. How texts become modules: scripts/build/gpu_kernels.py, docs/kernel-dialect.md.
# The interpreter itself, not a version manager's script before it, which can take longer than what a build runs with it.
if(NOT Python3_EXECUTABLE)
  execute_process(COMMAND python3 -c "import sys; print(sys.executable, end='')" OUTPUT_VARIABLE python3 ERROR_QUIET)
  if(python3)
    set(Python3_EXECUTABLE ${python3} CACHE FILEPATH "The interpreter that builds with")
  endif()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# What unpacks kernels (gpu/unpack.h), linked statically: a plugin needs nothing but the C library.
find_library(GIMBAL_ZLIB_LIBRARY libz.a REQUIRED)
set(GIMBAL_GPU_DEF ${CMAKE_SOURCE_DIR}/src/gpu/kernels.def)
# For devices with matrix units.
set(GIMBAL_GPU_MATRIX ${CMAKE_SOURCE_DIR}/src/gpu/matrix/kernels.def)
# The maps of tensors.
set(GIMBAL_GPU_TENSORS ${CMAKE_SOURCE_DIR}/src/gpu/tensors/kernels.def)
# The frame of kernel texts that programs bring (gpu/text/kernel_text.h), as text in each language.
set(GIMBAL_GPU_TEXT ${CMAKE_SOURCE_DIR}/src/gpu/text/kernels.def)
# What runtimes ask devices with (gpu/probes.h).
set(GIMBAL_GPU_PROBES ${CMAKE_SOURCE_DIR}/src/gpu/probes/kernels.def)
set(gpu_generator ${CMAKE_SOURCE_DIR}/scripts/build/gpu_kernels.py)
set(gpu_packer ${CMAKE_SOURCE_DIR}/scripts/build/pack_modules.py)
set(gpu_formats ${CMAKE_SOURCE_DIR}/src/tensor/formats.def)  # read by gpu_text.py, too
set(gpu_scripts ${CMAKE_SOURCE_DIR}/scripts/build/gpu_text.py ${CMAKE_SOURCE_DIR}/scripts/build/gpu_modules.py ${gpu_formats})
file(GLOB gpu_dialects CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/gpu/dialect/*.h)

# gpu_read(<kernels.def>): gpu_key, gpu_folder, gpu_texts, gpu_names, and <name>_file, <name>_flags for each, in the caller.
macro(gpu_read definition)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${definition} ${gpu_formats})
  get_filename_component(gpu_parent ${definition} DIRECTORY)
  file(RELATIVE_PATH gpu_key ${CMAKE_SOURCE_DIR} ${gpu_parent})
  string(MAKE_C_IDENTIFIER ${gpu_key} gpu_key)
  set(gpu_folder ${CMAKE_BINARY_DIR}/gpu/${gpu_key})
  file(GLOB gpu_texts CONFIGURE_DEPENDS ${gpu_parent}/kernels/*.k)
  file(GLOB gpu_shared_texts CONFIGURE_DEPENDS ${gpu_parent}/kernels/*.inc ${CMAKE_SOURCE_DIR}/src/gpu/kernels/*.inc ${CMAKE_SOURCE_DIR}/src/ops/*.inc)
  if("${definition}" STREQUAL "${GIMBAL_GPU_TENSORS}" OR "${definition}" STREQUAL "${GIMBAL_GPU_TEXT}")
    file(GLOB gpu_formulas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/formulas/*.inc ${CMAKE_SOURCE_DIR}/src/ops/maps.def
         ${CMAKE_SOURCE_DIR}/src/gpu/tensors/kernels/*.inc)
    list(APPEND gpu_shared_texts ${gpu_formulas})
  endif()
  # Asked for once, and again when what answers has changed.
  set(gpu_asked "")
  foreach(gpu_file ${definition} ${gpu_generator} ${gpu_scripts})
    file(SHA256 ${gpu_file} gpu_hash)
    string(APPEND gpu_asked ${gpu_hash})
  endforeach()
  set(gpu_rows "${gpu_rows_${gpu_key}}")
  if(NOT gpu_asked STREQUAL "${gpu_asked_${gpu_key}}")
    execute_process(COMMAND ${Python3_EXECUTABLE} ${gpu_generator} rows ${definition} OUTPUT_VARIABLE gpu_rows
                    ERROR_VARIABLE gpu_problem RESULT_VARIABLE gpu_result OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(gpu_result)
      message(FATAL_ERROR "${gpu_problem}")
    endif()
    string(REPLACE "\n" ";" gpu_rows "${gpu_rows}")
    set(gpu_rows_${gpu_key} "${gpu_rows}" CACHE INTERNAL "")
    set(gpu_asked_${gpu_key} ${gpu_asked} CACHE INTERNAL "")
  endif()
  set(gpu_names "")
  foreach(row IN LISTS gpu_rows)
    string(REGEX MATCH "^([a-z0-9_]+) ([a-z0-9_]+) ?(.*)$" gpu_row "${row}")
    list(APPEND gpu_names ${CMAKE_MATCH_1})
    set(${CMAKE_MATCH_1}_file ${gpu_parent}/kernels/${CMAKE_MATCH_2}.k)
    set(${CMAKE_MATCH_1}_flags "${CMAKE_MATCH_3}")
  endforeach()
endmacro()

# gimbal_gpu_host(<target> [kernels.def]): the argument structs of the kernels, as "gpu_kernels.h". A library is compiled for size: every
# plugin has a copy of this code, and the driver takes most of the time of a launch.
function(gimbal_gpu_host target)
  set(definition ${GIMBAL_GPU_DEF})
  if(ARGC GREATER 1)
    set(definition ${ARGV1})
  endif()
  gpu_read(${definition})
  if(NOT TARGET gpu_facts_${gpu_key})
    add_custom_command(OUTPUT ${gpu_folder}/gpu_kernels.h ${gpu_folder}/facts.json
      COMMAND Python3::Interpreter ${gpu_generator} facts ${definition} ${CMAKE_SOURCE_DIR}/src
              ${gpu_folder}/gpu_kernels.h ${gpu_folder}/facts.json
      DEPENDS ${gpu_generator} ${gpu_scripts} ${definition} ${gpu_texts} ${gpu_shared_texts} ${CMAKE_SOURCE_DIR}/src/gpu/dialect/host.h
      BYPRODUCTS ${gpu_folder}/facts.stamp VERBATIM)
    add_custom_target(gpu_facts_${gpu_key} DEPENDS ${gpu_folder}/gpu_kernels.h ${gpu_folder}/facts.json)
  endif()
  add_dependencies(${target} gpu_facts_${gpu_key})
  target_include_directories(${target} PRIVATE ${gpu_folder})
  get_target_property(kind ${target} TYPE)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND kind STREQUAL "STATIC_LIBRARY")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Os>)
  endif()
endfunction()

# The files that hold the kernels as C++ for the emulator, in <out>: the text once per form, see dialect/emulator.h.
function(gpu_emulator_sources out definition)
  gpu_read(${definition})
  set(files "")
  foreach(name IN LISTS gpu_names)
    string(REGEX REPLACE "-D([A-Za-z0-9_]+)=([^ ]+) *" "#define \\1 \\2\n" flags "${${name}_flags}")
    string(REGEX REPLACE "-D([A-Za-z0-9_]+) *" "#define \\1 1\n" flags "${flags}")
    # Relative, so that ccache knows the file in another checkout, too.
    file(RELATIVE_PATH text ${gpu_folder}/emulator ${${name}_file})
    file(CONFIGURE OUTPUT ${gpu_folder}/emulator/${name}.cpp CONTENT
"// Generated by cmake/gpu.cmake: ${name} for the emulator.
#include \"gpu/dialect/emulator_lane.h\"
#define KERNEL_HEADER \"gpu/dialect/emulator.h\"
#define KERNEL_NAME ${name}
${flags}namespace gimbal::emulator::emulated::${name} {
namespace in_fast {
#define EMULATOR_FORM fast
#include \"${text}\"
#undef EMULATOR_FORM
}
namespace in_checked {
#define EMULATOR_FORM checked
#include \"${text}\"
}
extern const uint32_t shared_bytes;
const uint32_t shared_bytes = sizeof(in_fast::SharedMemory);
void fast(Lane& lane);
void fast(Lane& lane) { in_fast::lane_function(lane); }
void checked(Lane& lane);
void checked(Lane& lane) { in_checked::lane_function(lane); }
}
" @ONLY)
    list(APPEND files ${gpu_folder}/emulator/${name}.cpp)
  endforeach()
  # The warnings find what the strict targets refuse: implicit conversions.
  set_source_files_properties(${files} TARGET_DIRECTORY ${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-O2;-Wconversion;-Wsign-conversion;-Wsign-compare;-Wdouble-promotion;-fno-math-errno")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# gimbal_gpu_modules(<target> <language> [kernels.def prefix [packed]]): adds to the target all kernels and their table, the function
# gimbal::gpu::<prefix><language>_modules() of gpu/modules.h. The engine's are packed, but for the emulator's. Languages: emulator spirv
# opencl wgsl msl ptx amdgcn cubin_sm_NN; of GIMBAL_GPU_TEXT opencl wgsl glsl nvidia amd.
function(gimbal_gpu_modules target language)
  set(definition ${GIMBAL_GPU_DEF})
  set(prefix "")
  set(packed packed)
  if(ARGC GREATER 2)
    set(definition ${ARGV2})
    set(prefix ${ARGV3})
    set(packed "${ARGV4}")
  endif()
  if(ARGC GREATER 2)
    gimbal_gpu_host(${target} ${definition})
  else()
    gimbal_gpu_host(${target})
  endif()
  gpu_read(${definition})
  gpu_need_tools(${language})
  if(language STREQUAL "amdgcn")
    gpu_add_amdgcn(${target} ${definition} "${prefix}" "${packed}")
    return()
  endif()
  set(folder ${gpu_folder}/${language})
  set(table ${gpu_folder}/${language}_table)
  set(modules "")
  set(sources ${table}.cpp)
  set_source_files_properties(${table}.cpp TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  if(language STREQUAL "emulator")
    gpu_emulator_sources(files ${definition} ${target})
    target_sources(${target} PRIVATE ${files})
    target_include_directories(${target} PRIVATE ${gpu_parent}/kernels ${CMAKE_SOURCE_DIR}/src)
  else()
    foreach(name IN LISTS gpu_names)
      gpu_module_command(${language} ${name} ${folder}/${name} ${definition})
      list(APPEND modules ${folder}/${name})
    endforeach()
    gpu_pack("${packed}" folder modules ${gpu_names})
    list(APPEND sources ${table}.S)
    set_source_files_properties(${table}.S PROPERTIES OBJECT_DEPENDS "${modules}")
  endif()
  add_custom_command(OUTPUT ${sources}
    COMMAND Python3::Interpreter ${gpu_generator} table ${language} ${gpu_folder}/facts.json ${folder} ${prefix}${language}_modules ${table}.cpp ${packed}
    DEPENDS ${gpu_generator} ${gpu_scripts} ${gpu_folder}/facts.json VERBATIM)
  target_sources(${target} PRIVATE ${sources})
endfunction()

# One kernel for one target. Rebuilt when its text, a header of the dialects or a text that others include changes.
function(gpu_module_command language name out definition)
  set(texts ${${name}_file})
  if(name STREQUAL "all")
    set(texts ${gpu_texts})
  endif()
  set(more "")
  if(language MATCHES "^(spirv|opencl)$")
    set(more ${out}.subgroups)  # empty for kernels without a TREE
  endif()
  # -S: without other people's packages, which take longer to look for than most modules take to make.
  add_custom_command(OUTPUT ${out} BYPRODUCTS ${more}
    COMMAND Python3::Interpreter -S ${gpu_generator} module ${language} ${name} ${definition} ${CMAKE_SOURCE_DIR}/src ${out}
    DEPENDS ${gpu_generator} ${gpu_scripts} ${definition} ${texts} ${gpu_shared_texts} ${gpu_dialects}
    COMMENT "Kernel ${name} for ${language}" VERBATIM)
endfunction()

# gpu_pack(<packed> <folder> <modules> <names...>): where the first is not empty, has the modules of a folder packed in another; the
# two variables then name that one, and what is newer than all in it.
function(gpu_pack packed of_folder of_modules)
  if(packed)
    set(stamp ${${of_folder}}.packed)
    add_custom_command(OUTPUT ${stamp}
      COMMAND Python3::Interpreter -S ${gpu_packer} ${${of_folder}} ${${of_folder}}_packed ${stamp} ${ARGN}
      DEPENDS ${gpu_packer} ${${of_modules}} VERBATIM)
    set(${of_folder} ${${of_folder}}_packed PARENT_SCOPE)
    set(${of_modules} ${stamp} PARENT_SCOPE)
  endif()
endfunction()

# One module for each architecture, and one function over their tables.
set(GIMBAL_AMD_ARCHITECTURES gfx90a gfx942 gfx1030 gfx1100 gfx1201 CACHE STRING "AMD architectures to build kernels for")
function(gpu_add_amdgcn target definition prefix packed)
  gpu_read(${definition})
  set(declarations "")
  set(choices "")
  foreach(architecture IN LISTS GIMBAL_AMD_ARCHITECTURES)
    set(folder ${gpu_folder}/${architecture})
    set(table ${gpu_folder}/${architecture}_table)
    gpu_module_command(amdgcn-${architecture} all ${folder}/all ${definition})
    set(modules ${folder}/all)
    gpu_pack("${packed}" folder modules all)
    set_source_files_properties(${table}.S PROPERTIES OBJECT_DEPENDS ${modules})
    add_custom_command(OUTPUT ${table}.cpp ${table}.S
      COMMAND Python3::Interpreter ${gpu_generator} table amdgcn-${architecture} ${gpu_folder}/facts.json ${folder}
              ${prefix}${architecture}_modules ${table}.cpp ${packed}
      DEPENDS ${gpu_generator} ${gpu_scripts} ${gpu_folder}/facts.json VERBATIM)
    set_source_files_properties(${table}.cpp TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    target_sources(${target} PRIVATE ${table}.cpp ${table}.S)
    string(APPEND declarations "std::span<const KernelCode> ${prefix}${architecture}_modules();\n")
    string(APPEND choices "  if (architecture == \"${architecture}\") return ${prefix}${architecture}_modules();\n")
  endforeach()
  file(CONFIGURE OUTPUT ${gpu_folder}/${prefix}amdgcn.cpp CONTENT
"// Generated by cmake/gpu.cmake.
#include \"gpu/modules.h\"
namespace gimbal::gpu {
${declarations}std::span<const KernelCode> ${prefix}amdgcn_modules(std::string_view architecture) {
${choices}  return {};
}
}
")
  target_sources(${target} PRIVATE ${gpu_folder}/${prefix}amdgcn.cpp)
endfunction()

# Stops with the names of the packages when a tool of a language is not there.
function(gpu_need_tools language)
  set(needs cpp=cpp)
  if(language MATCHES "^(spirv|msl)$")
    list(APPEND needs glslc=glslc spirv-opt=spirv-tools spirv-val=spirv-tools)
  endif()
  if(language STREQUAL "msl")
    list(APPEND needs spirv-cross=spirv-cross)
  elseif(language MATCHES "^(ptx|amdgcn|cubin_sm_.*)$")
    list(APPEND needs clang-19=clang-19)
  endif()
  if(language STREQUAL "amdgcn")
    list(APPEND needs ld.lld-19=lld-19)
  endif()
  foreach(need IN LISTS needs)
    string(REPLACE "=" ";" pair ${need})
    list(GET pair 0 tool)
    list(GET pair 1 package)
    find_program(GIMBAL_TOOL_${tool} ${tool})
    if(NOT GIMBAL_TOOL_${tool})
      message(FATAL_ERROR "The ${language} kernels are made with ${tool}, which cannot be found. Debian has it in the package ${package}: "
                          "run `scripts/setup.sh gpu`, or leave the backend out.")
    endif()
  endforeach()
endfunction()
