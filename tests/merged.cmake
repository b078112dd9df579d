# Most of what a test takes to compile and to link is what it has in common with its neighbours. With GIMBAL_MERGE_TESTS those that
# need nothing of their own are a few programs. ctest has its entry for each file all the same, and runs it in a process of its own.
# One test alone takes longer to build then, so only CI and the preset asan do this.
set(merged_in_one_file 10)  # on the average at most; g++ takes 1 GB for eight

# These have targets, libraries or definitions of their own; so have those of a GPU backend and whatever replaces operator new, defines macros or has a main() of its own.
set(never_merged amx conformance conformance_views emulated_kernels kernels pair_product maps maps_golden emulated_mutants emulator kernel_text reload)

# gimbal_program_of_test(<name> <source> <backends...>): the program that holds a test, in `program`: one of its own, or that of
# these backends, which are those that it would have in any build: the program is to be the same in all.
function(gimbal_program_of_test name source)
  set(program ${name} PARENT_SCOPE)
  string(REGEX REPLACE "_test$" "" subject ${name})
  file(STRINGS ${source} special REGEX "^#define|^int main|support/operator_new.h")
  if(GIMBAL_MERGE_TESTS STREQUAL "threads")
    gimbal_merged_for_tsan(${name} ${source} merged)
  else()
    set(merged ${GIMBAL_MERGE_TESTS})
  endif()
  if(NOT merged)
    return()
  endif()
  if(special OR subject IN_LIST never_merged OR source MATCHES "/tests/(library|shapes|tensors)/" OR name MATCHES "^(${of_a_backend})_")
    return()
  endif()
  set(key ${ARGN})
  list(REMOVE_ITEM key cpu)
  if(ARGN STREQUAL GIMBAL_DECLARED_BACKENDS)
    set(key all)
  elseif(name MATCHES "^emulated_")
    set(key emulated)
  elseif(source MATCHES "/tests/server/")
    set(key server)
  endif()
  list(PREPEND key merged_tests)
  list(JOIN key "_" key)
  set(program ${key} PARENT_SCOPE)
endfunction()

# gimbal_merge(<program> <sources...>): compiles several tests in each file. The digest of a test's name chooses its file, and the number of
# files is a power of two. A new test then changes one file, and ccache still has the others.
function(gimbal_merge program)
  list(LENGTH ARGN count)
  set(files 1)
  math(EXPR full "${merged_in_one_file} * ${files}")
  while(count GREATER full)
    math(EXPR files "2 * ${files}")
    math(EXPR full "${merged_in_one_file} * ${files}")
  endwhile()
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    string(MD5 digest ${name})
    string(SUBSTRING ${digest} 0 4 digest)
    math(EXPR number "0x${digest} % ${files}")
    list(APPEND sources_${number} ${source})
  endforeach()
  math(EXPR last "${files} - 1")
  foreach(number RANGE ${last})
    if(sources_${number})
      set(out ${CMAKE_CURRENT_BINARY_DIR}/merged/${program}_${number}.cpp)
      add_custom_command(OUTPUT ${out} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/build/merge-tests.py ${out} ${sources_${number}}
                         DEPENDS ${CMAKE_SOURCE_DIR}/scripts/build/merge-tests.py ${sources_${number}} VERBATIM)
      target_sources(${program} PRIVATE ${out})
    endif()
  endforeach()
endfunction()
