# The shapes that gimbal is built in: which wishes the configure step takes, what built files hold, what is installed.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(shapes ${CMAKE_CURRENT_LIST_DIR})

add_test(NAME gates COMMAND Python3::Interpreter ${shapes}/gates_test.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/tests/gates)

if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT CMAKE_CROSSCOMPILING)  # the libraries of its cases are for this machine
  add_test(NAME external_llama COMMAND Python3::Interpreter ${shapes}/external_llama_test.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/tests/external_llama)
endif()

# Only a release build leaves out what is not used.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GIMBAL_SANITIZE_ADDRESS AND NOT GIMBAL_SANITIZE_THREAD AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME built_files COMMAND Python3::Interpreter ${shapes}/built_files_test.py ${CMAKE_BINARY_DIR} ${GIMBAL_BACKEND_LINKAGE} ${GIMBAL_BACKENDS})
  add_test(NAME installed COMMAND Python3::Interpreter ${shapes}/installed_test.py ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/tests/installed ${GIMBAL_BACKENDS})
endif()
