# The kernel dialect's own tests: example kernels on the emulator, and for each target whose tools are here.
set(simt_tests ${CMAKE_CURRENT_LIST_DIR})
find_package(Python3 REQUIRED COMPONENTS Interpreter)
target_link_libraries(emulator_test PRIVATE gimbal_emulator_runtime gimbal_simt_probes)
gimbal_simt_modules(emulator_test emulator ${simt_tests}/examples/kernels.def example_)
gimbal_simt_modules(emulator_test emulator ${simt_tests}/toy/kernels.def toy_)
gimbal_simt_modules(emulator_test emulator ${simt_tests}/defects/kernels.def defect_)
gimbal_simt_modules(emulator_test emulator ${GIMBAL_SIMT_PROBES} probe_)
gimbal_simt_modules(emulator_test emulator ${simt_tests}/corrections/kernels.def correction_)

# The engine's kernels with one wrong word each, which conformance must notice.
file(GLOB mutated CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/gpu/kernels/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutated} ${GIMBAL_SIMT_DEF} ${simt_tests}/mutants/mutants.txt
             ${simt_tests}/mutants/few.txt ${simt_tests}/mutants/make_mutants.py)
# simt_mutants(<test> <language> <list>): those of a list, for one target.
function(simt_mutants test language list)
  set(mutants ${CMAKE_BINARY_DIR}/simt_${list})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${simt_tests}/mutants/make_mutants.py ${GIMBAL_SIMT_DEF}
                  ${simt_tests}/mutants/${list}.txt ${mutants} COMMAND_ERROR_IS_FATAL ANY)
  target_include_directories(${test} PRIVATE ${mutants})
  gimbal_simt_modules(${test} ${language} ${mutants}/kernels.def mutant_)
endfunction()
simt_mutants(emulated_mutants_test emulator mutants)

add_test(NAME lint_kernels COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/lint_kernels.py ${GIMBAL_SIMT_DEF}
         ${GIMBAL_SIMT_PROBES} ${simt_tests}/examples/kernels.def ${simt_tests}/corrections/kernels.def)
add_test(NAME simt_toy_test COMMAND Python3::Interpreter ${simt_tests}/toy_test.py)
add_test(NAME lint_kernels_test COMMAND Python3::Interpreter ${simt_tests}/lint_test.py)

# Each target's own compiler and checker accept what the dialect becomes: where `scripts/setup.sh gpu` has been run.
set(absent "")
foreach(tool glslc spirv-opt spirv-val spirv-cross clang-19 ld.lld-19)
  find_program(GIMBAL_TOOL_${tool} ${tool})
  if(NOT GIMBAL_TOOL_${tool})
    list(APPEND absent ${tool})
  endif()
endforeach()
if(absent)
  list(JOIN absent ", " absent)
  message(STATUS "The kernels' other languages are not tested: ${absent} cannot be found (scripts/setup.sh gpu)")
  add_test(NAME simt_targets_test COMMAND false)
  set_tests_properties(simt_targets_test PROPERTIES DISABLED TRUE)  # so that ctest says that it was not run
else()
  add_executable(simt_targets_test ${simt_tests}/targets.cpp)
  set_target_properties(simt_targets_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(simt_targets_test PRIVATE gimbal_test_support)
  gimbal_link_backends(simt_targets_test)
  foreach(language spirv opencl wgsl msl ptx amdgcn)
    gimbal_simt_modules(simt_targets_test ${language} ${simt_tests}/examples/kernels.def example_)
  endforeach()
  add_test(NAME simt_targets_test COMMAND simt_targets_test)
  add_test(NAME simt_opencl_syntax COMMAND ${simt_tests}/opencl_syntax.sh ${CMAKE_BINARY_DIR}/simt/tests_gpu_examples/opencl)
endif()
