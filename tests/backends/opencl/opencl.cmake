# The OpenCL tests: on PoCL in CI, or on whatever devices the machine has.
target_link_libraries(opencl_counts_test PRIVATE gimbal_gpu)
foreach(test opencl_runtime_test opencl_absent_test opencl_counts_test)
  target_link_libraries(${test} PRIVATE gimbal_opencl_runtime)
endforeach()
gpu_mutants(opencl_mutants_test opencl few)
target_link_libraries(opencl_mutants_test PRIVATE gimbal_gpu gimbal_opencl_runtime)
gimbal_gpu_modules(opencl_runtime_test opencl ${CMAKE_CURRENT_SOURCE_DIR}/gpu/examples/kernels.def example_)
gimbal_gpu_modules(opencl_runtime_test opencl ${CMAKE_CURRENT_SOURCE_DIR}/gpu/toy/kernels.def toy_)
gimbal_gpu_modules(opencl_runtime_test opencl ${CMAKE_CURRENT_SOURCE_DIR}/gpu/rounding/kernels.def rounding_)
# PoCL gives as many devices as it is told to.
set_property(TEST opencl_layers_test APPEND PROPERTY ENVIRONMENT "POCL_DEVICES=basic basic")
