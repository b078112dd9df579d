# The Vulkan tests, on lavapipe with groups of 4, 8 and 16 lanes to a subgroup (its vectors of 128, 256 and 512 bits), and under
# the validation layer.
gimbal_gpu_modules(vulkan_test spirv ${CMAKE_CURRENT_SOURCE_DIR}/gpu/examples/kernels.def example_)
gimbal_gpu_modules(vulkan_test spirv ${CMAKE_CURRENT_SOURCE_DIR}/gpu/toy/kernels.def toy_)
gimbal_gpu_modules(vulkan_test spirv ${CMAKE_CURRENT_SOURCE_DIR}/gpu/rounding/kernels.def rounding_)
gpu_mutants(vulkan_mutants_test spirv few)
target_link_libraries(vulkan_mutants_test PRIVATE gimbal_gpu gimbal_vulkan_runtime)
target_compile_options(vulkan_test PRIVATE -Wno-missing-field-initializers)
target_link_libraries(vulkan_test PRIVATE gimbal_vulkan_runtime)
foreach(test vulkan_missing_test vulkan_counts_test)
  target_link_libraries(${test} PRIVATE gimbal_vulkan_runtime)
endforeach()
target_compile_options(vulkan_counts_test PRIVATE -Wno-missing-field-initializers)
target_link_libraries(vulkan_counts_test PRIVATE gimbal_gpu)

# vulkan_again(<test> <variant> <filter> <environment...>): a further ctest entry of an executable.
function(vulkan_again test variant filter)
  set(entry ${test}_${variant})
  add_test(NAME ${entry} COMMAND sh -c "${${entry}_needs} exec $<TARGET_FILE:${test}> --gtest_filter='${filter}'")
  set_tests_properties(${entry} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "GIMBAL=$<TARGET_FILE:gimbal>;GIMBAL_TEST_ENTRY=${entry};${ARGN}")
endfunction()

# Without AVX-512 one model has other bits there: docs/backends.md.
set(vulkan_models_test_width_512_needs
  "grep -qw avx512f /proc/cpuinfo || { echo 'skipped: this CPU has no vectors of 512 bits'; exit 77; };")
foreach(bits 128 256 512)
  vulkan_again(vulkan_test width_${bits} * LP_NATIVE_VECTOR_WIDTH=${bits})
  vulkan_again(vulkan_kernels_test width_${bits} *AgreeWithTheReference LP_NATIVE_VECTOR_WIDTH=${bits})
  vulkan_again(vulkan_models_test width_${bits} *BitsOfTheCpu:*Story* LP_NATIVE_VECTOR_WIDTH=${bits})
endforeach()

# Whatever the layer says fails the call during which it said it; what it says while nobody can be told (when a device is closed),
# it prints.
set(vulkan_validated "GIMBAL_TEST_OPTIONS=validation=1")
vulkan_again(vulkan_kernels_test validated *Agree* ${vulkan_validated})
vulkan_again(vulkan_models_test validated *EveryCache:*Story* ${vulkan_validated})
vulkan_again(vulkan_test validated -VulkanFailures.*:VulkanValidation.* VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation)
set_tests_properties(vulkan_test_validated PROPERTIES FAIL_REGULAR_EXPRESSION "VUID;Validation Error;Validation Warning")

# A layer that disguises the driver as another vendor's discrete GPU, and its manifest.
set(layers ${CMAKE_CURRENT_BINARY_DIR}/vulkan_layers)
add_library(vulkan_other_vendor MODULE ${CMAKE_CURRENT_LIST_DIR}/other_vendor.cpp)
target_include_directories(vulkan_other_vendor SYSTEM PRIVATE ${GIMBAL_VULKAN_INCLUDE})
set_target_properties(vulkan_other_vendor PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${layers} CXX_VISIBILITY_PRESET default)
file(CONFIGURE OUTPUT ${layers}/other_vendor.json CONTENT [[{
  "file_format_version": "1.1.2",
  "layer": {"name": "VK_LAYER_TEST_other_vendor", "type": "GLOBAL", "library_path": "./libvulkan_other_vendor.so",
            "api_version": "1.3.0", "implementation_version": "1", "description": "another vendor's GPU"}
}
]])
add_dependencies(vulkan_program_test vulkan_other_vendor)
target_compile_definitions(vulkan_program_test PRIVATE VULKAN_LAYERS="${layers}")
