# libgimbal.so: the C interface (include/gimbal/gimbal.h) for other languages, with the library and the cpu backend inside. Not under
# sanitizers, whose runtime a Python that loads it does not have.
if(GIMBAL_SANITIZE_ADDRESS OR GIMBAL_SANITIZE_THREAD)
  return()
endif()
file(STRINGS ${CMAKE_SOURCE_DIR}/include/gimbal/gimbal.h abi REGEX "^#define GIMBAL_C_ABI [0-9]+")
string(REGEX MATCH "[0-9]+$" abi "${abi}")
# The code is in the archive; CMake wants a file.
file(CONFIGURE OUTPUT package/c_library.cpp CONTENT "// All of it comes from gimbal_library.\n")
add_library(gimbal_c SHARED ${CMAKE_BINARY_DIR}/package/c_library.cpp)
set_target_properties(gimbal_c PROPERTIES OUTPUT_NAME gimbal VERSION ${abi} SOVERSION ${abi} EXPORT_NAME c)
target_include_directories(gimbal_c INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(gimbal_c PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,gimbal_library>)
gimbal_standalone(gimbal_c)
gimbal_decoders_in_shared_library(gimbal_c)
if(NOT APPLE)
  # Its symbols and no others: neither the C++ library's nor the standard library's meet those of the program.
  file(STRINGS ${CMAKE_SOURCE_DIR}/include/gimbal/gimbal.h functions REGEX "^GIMBAL_C_API ")
  list(TRANSFORM functions REPLACE "^[^(]*[ *](gimbal_[a-z_]+)[(].*$" "\\1")
  list(JOIN functions "; " functions)
  file(CONFIGURE OUTPUT package/c_library.map CONTENT "{ global: ${functions}; local: *; };\n")
  target_link_options(gimbal_c PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/package/c_library.map -Wl,-z,defs -Wl,--build-id)
endif()
