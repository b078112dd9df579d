# The WebGPU tests: Dawn over lavapipe, both from scripts/rig/webgpu.sh. Without them they say so; on a machine's own library and
# driver the executables run by themselves.
gimbal_gpu_modules(webgpu_runtime_test wgsl ${CMAKE_CURRENT_SOURCE_DIR}/gpu/examples/kernels.def example_)
gimbal_gpu_modules(webgpu_runtime_test wgsl ${CMAKE_CURRENT_SOURCE_DIR}/gpu/rounding/kernels.def rounding_)
gpu_mutants(webgpu_mutants_test wgsl few)
target_link_libraries(webgpu_mutants_test PRIVATE gimbal_gpu)
target_link_libraries(webgpu_counts_test PRIVATE gimbal_gpu)
foreach(test webgpu_runtime_test webgpu_absent_test webgpu_mutants_test webgpu_counts_test)
  target_link_libraries(${test} PRIVATE gimbal_webgpu_runtime)
endforeach()

set(webgpu_rig ${CMAKE_SOURCE_DIR}/build/webgpu-rig)
foreach(test webgpu_runtime_test webgpu_absent_test webgpu_kernels_test webgpu_models_test webgpu_tensors_test webgpu_mutants_test
             webgpu_counts_test webgpu_program_test)
  # The last silences lavapipe, which looks for windows.
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
    "VK_DRIVER_FILES=${webgpu_rig}/lavapipe.json;LD_LIBRARY_PATH=${webgpu_rig}/dawn;XDG_RUNTIME_DIR=${CMAKE_BINARY_DIR}")
endforeach()

# webgpu_native(<test> <version> <filter>): once more, on wgpu-native, of the same rig.
function(webgpu_native test version filter)
  set(entry ${test}_native_${version})
  set(library ${webgpu_rig}/wgpu-native-${version}/libwgpu_native.so)
  add_test(NAME ${entry} COMMAND sh -c
    "[ -e ${library} ] || { echo 'skipped: no wgpu-native from scripts/rig/webgpu.sh'; exit 77; }; exec $<TARGET_FILE:${test}> --gtest_filter='${filter}'")
  get_test_property(${test} ENVIRONMENT environment)
  set_tests_properties(${entry} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment};GIMBAL_TEST_ENTRY=${entry};GIMBAL_TEST_OPTIONS=library=${library};GIMBAL_TEST_LIBRARY=${library}")
endfunction()
# Not those that need Dawn's own ways to fail: wgpu-native ends the process when a submission fails.
foreach(version 27 29)
  webgpu_native(webgpu_runtime_test ${version} -*OutsideOfScopes*:*LostDevice*)
endforeach()
# Long, so all models run on one edition and all kernels on the other.
webgpu_native(webgpu_models_test 27 *BitsOfTheCpu:*Story*)
webgpu_native(webgpu_models_test 29 *Story*)
webgpu_native(webgpu_kernels_test 29 *AgreeWithTheReference)

# Libraries that are neither: they export what editions are told apart by.
set(webgpu_others ${CMAKE_CURRENT_BINARY_DIR}/webgpu_others)
set(native wgpuCreateInstance wgpuGetInstanceCapabilities wgpuDevicePoll)
set(later wgpuCreateInstance wgpuGetInstanceFeatures)
set(earlier wgpuCreateInstance wgpuInstanceRequestAdapter)
set(half wgpuCreateInstance wgpuGetInstanceCapabilities)
set(native_old ${native})
set(native_new ${native})
set(native_half ${native})
set(version_of_native_old 0x16010005u)  # 22.1.0.5
set(version_of_native_new 0x1e000000u)
set(version_of_native_half 0x1b000400u)
foreach(other native native_old native_new native_half later earlier half)
  set(symbols "")
  if(version_of_${other})
    set(symbols "unsigned wgpuGetVersion(void) { return ${version_of_${other}}; }\n")
  endif()
  foreach(symbol IN LISTS ${other})
    string(APPEND symbols "int ${symbol} = 1;\n")
  endforeach()
  file(CONFIGURE OUTPUT ${webgpu_others}/${other}.c CONTENT "${symbols}")
  add_library(webgpu_${other} SHARED ${webgpu_others}/${other}.c)
  set_target_properties(webgpu_${other} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${webgpu_others} C_VISIBILITY_PRESET default)
  add_dependencies(webgpu_absent_test webgpu_${other})
endforeach()
target_compile_definitions(webgpu_absent_test PRIVATE WEBGPU_OTHERS="${webgpu_others}")

# One with all that is asked for, under wgpu-native's name, in a folder of its own.
file(STRINGS ${CMAKE_SOURCE_DIR}/src/backends/webgpu/functions.def functions REGEX "^WEBGPU_FUNCTION")
set(symbols "unsigned wgpuGetVersion(void) { return 0x1b000400u; }\nint wgpuDevicePoll = 1;\n")
foreach(line IN LISTS functions)
  string(REGEX REPLACE "^WEBGPU_FUNCTION.(wgpu[A-Za-z]+).*" "int \\1 = 1;\n" line "${line}")
  string(APPEND symbols "${line}")
endforeach()
file(CONFIGURE OUTPUT ${webgpu_others}/whole.c CONTENT "${symbols}")
add_library(webgpu_whole SHARED ${webgpu_others}/whole.c)
set_target_properties(webgpu_whole PROPERTIES OUTPUT_NAME wgpu_native LIBRARY_OUTPUT_DIRECTORY ${webgpu_others}/whole)
add_dependencies(webgpu_absent_test webgpu_whole)
