# The kernel dialect's own tests: example kernels on the emulator, and for each target whose tools are here.
set(gpu_tests ${CMAKE_CURRENT_LIST_DIR})
find_package(Python3 REQUIRED COMPONENTS Interpreter)
target_link_libraries(emulator_test PRIVATE gimbal_emulator_runtime gimbal_gpu_probes)
gimbal_gpu_modules(emulator_test emulator ${gpu_tests}/examples/kernels.def example_)
gimbal_gpu_modules(emulator_test emulator ${gpu_tests}/toy/kernels.def toy_)
gimbal_gpu_modules(emulator_test emulator ${gpu_tests}/defects/kernels.def defect_)
gimbal_gpu_modules(emulator_test emulator ${GIMBAL_GPU_PROBES} probe_)
gimbal_gpu_modules(emulator_test emulator ${gpu_tests}/corrections/kernels.def correction_)

# docs/operations.md says which formats GPUs compute in.
if(TARGET operations_test)
  target_link_libraries(operations_test PRIVATE gimbal_gpu)
endif()

# Kernel texts at run time, and a stand-in for a vendor's compiler.
if(TARGET kernel_text_test)
  add_library(fake_nvrtc MODULE EXCLUDE_FROM_ALL ${gpu_tests}/text_compiler/fake.cpp)
  target_link_libraries(kernel_text_test PRIVATE gimbal_gpu gimbal_driver_api)
  target_compile_definitions(kernel_text_test PRIVATE FAKE_NVRTC="$<TARGET_FILE:fake_nvrtc>")
  add_dependencies(kernel_text_test fake_nvrtc)
endif()

# The engine's kernels with one wrong word each, which conformance must notice.
file(GLOB mutated CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/gpu/kernels/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutated} ${GIMBAL_GPU_DEF} ${gpu_tests}/mutants/mutants.txt
             ${gpu_tests}/mutants/few.txt ${gpu_tests}/mutants/make_mutants.py)
# gpu_mutants(<test> <language> <list>): those of a list, for one target.
function(gpu_mutants test language list)
  set(mutants ${CMAKE_BINARY_DIR}/gpu_${list})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${gpu_tests}/mutants/make_mutants.py ${GIMBAL_GPU_DEF}
                  ${gpu_tests}/mutants/${list}.txt ${mutants} COMMAND_ERROR_IS_FATAL ANY)
  target_include_directories(${test} PRIVATE ${mutants})
  gimbal_gpu_modules(${test} ${language} ${mutants}/kernels.def mutant_)
endfunction()
gpu_mutants(emulated_mutants_test emulator mutants)

add_test(NAME lint_kernels COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/build/lint_kernels.py ${GIMBAL_GPU_DEF}
         ${GIMBAL_GPU_PROBES} ${GIMBAL_GPU_TENSORS} ${GIMBAL_GPU_TEXT} ${gpu_tests}/examples/kernels.def ${gpu_tests}/corrections/kernels.def)
add_test(NAME gpu_toy_test COMMAND Python3::Interpreter ${gpu_tests}/toy_test.py)
set_tests_properties(gpu_toy_test PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME kernel_cache_test COMMAND Python3::Interpreter ${gpu_tests}/kernel_cache_test.py)
add_test(NAME lint_kernels_test COMMAND Python3::Interpreter ${gpu_tests}/lint_test.py)

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
  foreach(test gpu_targets_test gpu_opencl_syntax)
    add_test(NAME ${test} COMMAND sh -c "echo 'skipped: tools for the languages of kernels are absent (${absent}): scripts/setup.sh gpu'; exit 77")
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
else()
  add_executable(gpu_targets_test ${gpu_tests}/targets.cpp)
  set_target_properties(gpu_targets_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(gpu_targets_test PRIVATE gimbal_test_support)
  gimbal_link_backends(gpu_targets_test)
  foreach(language spirv opencl wgsl msl ptx amdgcn)
    gimbal_gpu_modules(gpu_targets_test ${language} ${gpu_tests}/examples/kernels.def example_)
  endforeach()
  add_test(NAME gpu_targets_test COMMAND gpu_targets_test)
  add_test(NAME gpu_opencl_syntax COMMAND ${gpu_tests}/opencl_syntax.sh ${CMAKE_BINARY_DIR}/gpu/tests_gpu_examples/opencl)
endif()

# docs/compatibility.md, where a program has all backends and stand-ins for the drivers of NVIDIA and AMD.
set(others ${GIMBAL_DECLARED_BACKENDS})
list(REMOVE_ITEM others emulator toy ${GIMBAL_BACKENDS})
if(NOT others)
  add_test(NAME check_compatibility COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/check/compatibility.py $<TARGET_FILE:gimbal>
           ${CMAKE_BINARY_DIR}/tests/fake_drivers ${CMAKE_SOURCE_DIR}/build/webgpu-rig)
  set_tests_properties(check_compatibility PROPERTIES SKIP_RETURN_CODE 77)
endif()
