# The files of deploy/ by their own programs. One build is enough: they are about the program from the outside.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CROSSCOMPILING)
  if(GIMBAL_BACKENDS STREQUAL "cpu")
    foreach(name files balancer)
      add_test(NAME deploy_${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/${name}_test.py $<TARGET_FILE:gimbal>)
      set_tests_properties(deploy_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
    endforeach()
  endif()
  add_test(NAME deploy_package COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/package_test.py ${CMAKE_BINARY_DIR}
           ${CMAKE_BINARY_DIR}/tests/packages ${GIMBAL_BACKENDS})
  set_tests_properties(deploy_package PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()
