# webgpu_native(<test> <version> <filter>): once more, with a library in place of wgpu-native (standin.cpp), in front of Dawn.
# An empty library of Dawn's name stands for it while linking.
set(webgpu_native ${CMAKE_CURRENT_BINARY_DIR}/webgpu_native)
file(CONFIGURE OUTPUT ${webgpu_native}/empty.c CONTENT "int webgpu_empty;\n")
add_library(webgpu_dawn SHARED ${webgpu_native}/empty.c)
set_target_properties(webgpu_dawn PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${webgpu_native}/empty)
foreach(version 27 29)
  add_library(wgpu_native_${version} SHARED ${CMAKE_CURRENT_LIST_DIR}/standin.cpp)
  target_compile_definitions(wgpu_native_${version} PRIVATE STANDIN_VERSION=${version})
  target_compile_options(wgpu_native_${version} PRIVATE -Wno-invalid-offsetof)
  target_link_libraries(wgpu_native_${version} PRIVATE gimbal_webgpu_runtime -Wl,--no-as-needed webgpu_dawn)
  set_target_properties(wgpu_native_${version} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${webgpu_native} SKIP_BUILD_RPATH ON)
endforeach()
function(webgpu_native test version filter)
  add_dependencies(${test} wgpu_native_${version})
  set(entry ${test}_native_${version})
  set(library $<TARGET_FILE:wgpu_native_${version}>)
  add_test(NAME ${entry} COMMAND sh -c
    "[ -e ${webgpu_rig}/complete ] || { echo 'skipped: no Dawn from scripts/rig/webgpu.sh'; exit 77; }; exec $<TARGET_FILE:${test}> --gtest_filter='${filter}'")
  get_test_property(${test} ENVIRONMENT environment)
  set_tests_properties(${entry} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment};GIMBAL_TEST_ENTRY=${entry};GIMBAL_TEST_OPTIONS=library=${library};GIMBAL_TEST_LIBRARY=${library}")
endfunction()
# Not those that need Dawn's own ways to fail.
foreach(version 27 29)
  webgpu_native(webgpu_runtime_test ${version} -*OfMemoryLeaveTheDeviceUsable:*OutsideOfScopes*)
endforeach()
webgpu_native(webgpu_kernels_test 27 *AgreeWithTheReference)
webgpu_native(webgpu_models_test 27 *BitsOfTheCpu:*Story*)
