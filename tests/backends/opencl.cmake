# The OpenCL tests: on PoCL in CI, or on whatever devices the machine has.
foreach(test opencl_runtime_test opencl_absent_test)
  target_link_libraries(${test} PRIVATE gimbal_opencl_runtime)
endforeach()
gimbal_simt_modules(opencl_runtime_test opencl ${CMAKE_CURRENT_LIST_DIR}/simt/examples/kernels.def example_)
gimbal_simt_modules(opencl_runtime_test opencl ${CMAKE_CURRENT_LIST_DIR}/simt/rounding/kernels.def rounding_)
