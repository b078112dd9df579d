# The WebGPU tests: Dawn over lavapipe, both from scripts/webgpu-test-rig.sh. Without them they say so; on a machine's own library and
# driver the executables run by themselves.
gimbal_simt_modules(webgpu_runtime_test wgsl ${CMAKE_CURRENT_LIST_DIR}/simt/examples/kernels.def example_)
gimbal_simt_modules(webgpu_runtime_test wgsl ${CMAKE_CURRENT_LIST_DIR}/simt/rounding/kernels.def rounding_)
simt_mutants(webgpu_mutants_test wgsl few)
target_link_libraries(webgpu_mutants_test PRIVATE gimbal_simt)
foreach(test webgpu_runtime_test webgpu_absent_test webgpu_mutants_test)
  target_link_libraries(${test} PRIVATE gimbal_webgpu_runtime)
endforeach()

set(webgpu_rig ${CMAKE_SOURCE_DIR}/build/webgpu-rig)
foreach(test webgpu_runtime_test webgpu_absent_test webgpu_kernels_test webgpu_models_test webgpu_mutants_test)
  # The last silences lavapipe, which looks for windows.
  set_tests_properties(${test} PROPERTIES ENVIRONMENT
    "GIMBAL=$<TARGET_FILE:gimbal>;VK_DRIVER_FILES=${webgpu_rig}/lavapipe.json;LD_LIBRARY_PATH=${webgpu_rig}/dawn;XDG_RUNTIME_DIR=${CMAKE_BINARY_DIR}")
endforeach()

# Libraries that are not the Dawn that is meant: they export what editions are told apart by.
set(webgpu_others ${CMAKE_CURRENT_BINARY_DIR}/webgpu_others)
set(native wgpuCreateInstance wgpuGetInstanceCapabilities wgpuDevicePoll)
set(later wgpuCreateInstance wgpuGetInstanceFeatures)
set(earlier wgpuCreateInstance wgpuInstanceRequestAdapter)
set(half wgpuCreateInstance wgpuGetInstanceCapabilities)
foreach(other native later earlier half)
  set(symbols "")
  foreach(symbol IN LISTS ${other})
    string(APPEND symbols "int ${symbol} = 1;\n")
  endforeach()
  file(CONFIGURE OUTPUT ${webgpu_others}/${other}.c CONTENT "${symbols}")
  add_library(webgpu_${other} SHARED ${webgpu_others}/${other}.c)
  set_target_properties(webgpu_${other} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${webgpu_others} C_VISIBILITY_PRESET default)
  add_dependencies(webgpu_absent_test webgpu_${other})
endforeach()
target_compile_definitions(webgpu_absent_test PRIVATE WEBGPU_OTHERS="${webgpu_others}")
