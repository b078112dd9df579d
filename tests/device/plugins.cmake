# Plugins for tests, in tests/plugins/<which>/: see device/plugins/fake.cpp. Tests find them by support/fake_plugins.h.
set(test_plugins ${CMAKE_BINARY_DIR}/tests/plugins)
if(NOT "toy" IN_LIST GIMBAL_BACKENDS)
  add_subdirectory(${CMAKE_SOURCE_DIR}/src/backends/toy ${CMAKE_BINARY_DIR}/src/backends/toy)
  set_target_properties(gimbal_backend_toy PROPERTIES EXCLUDE_FROM_ALL ON)
  set_target_properties(gimbal_plugin_toy PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/toy)
endif()

add_custom_target(test_plugins)
add_dependencies(test_plugins gimbal_plugin_toy)
function(gimbal_test_plugin which source)
  gimbal_module(test_plugin_${which} fake ${CMAKE_CURRENT_SOURCE_DIR}/device/plugins/${source}.cpp)
  set_target_properties(test_plugin_${which} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/${which} EXCLUDE_FROM_ALL ON)
  add_dependencies(test_plugins test_plugin_${which})
endfunction()
foreach(version 1 2)
  gimbal_test_plugin(v${version} fake)
  target_compile_definitions(test_plugin_v${version} PRIVATE FAKE_VERSION="${version}")
  target_link_libraries(test_plugin_v${version} PRIVATE gimbal_backend_toy)
endforeach()
gimbal_test_plugin(foreign foreign)
gimbal_test_plugin(undefined undefined)
gimbal_test_plugin(vendor vendor)
# Linked with a library that is nowhere when the plugin is opened.
add_library(test_vendor SHARED EXCLUDE_FROM_ALL ${CMAKE_CURRENT_SOURCE_DIR}/device/plugins/foreign.cpp)
set_target_properties(test_vendor PROPERTIES OUTPUT_NAME of-some-vendor LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/vendor/elsewhere)
target_link_libraries(test_plugin_vendor PRIVATE test_vendor)
set_target_properties(test_plugin_vendor PROPERTIES SKIP_BUILD_RPATH ON)

# Every test that includes support/fake_plugins.h.
foreach(source ${tests})
  file(STRINGS ${source} uses REGEX "support/fake_plugins.h")
  get_filename_component(name ${source} NAME_WE)
  if(uses AND program_of_${name})
    add_dependencies(${program_of_${name}} test_plugins)
  endif()
endforeach()

# The plugins of all backends of this build, for tests of what users have.
set(real_plugins)
foreach(backend ${GIMBAL_BACKENDS})
  if(TARGET gimbal_plugin_${backend})
    list(APPEND real_plugins "\"$<TARGET_FILE:gimbal_plugin_${backend}>\"")
    add_dependencies(reload_test gimbal_plugin_${backend})
  endif()
endforeach()
list(JOIN real_plugins "," real_plugins)
target_compile_definitions(reload_test PRIVATE "GIMBAL_REAL_PLUGINS=${real_plugins}")

# docs/adding-a-backend.md, done from a scratch checkout.
add_test(NAME adding_a_backend
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/device/adding_a_backend_test.sh ${CMAKE_SOURCE_DIR} $<TARGET_FILE:gimbal> ${CMAKE_COMMAND}
                 ${CMAKE_CXX_COMPILER} ${CMAKE_C_COMPILER} ${CMAKE_MAKE_PROGRAM})
set_tests_properties(adding_a_backend PROPERTIES TIMEOUT 900 COST 60)
