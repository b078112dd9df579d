# The Python package: the extension module gimbal._gimbal over the limited API of 3.11, so that one file serves every later Python, and
# the package's sources beside it: build/.../python is a folder for PYTHONPATH.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
file(GLOB sources CONFIGURE_DEPENDS src/python/*.cpp)
add_library(gimbal_python MODULE ${sources})
target_include_directories(gimbal_python PRIVATE ${CMAKE_SOURCE_DIR}/src ${Python3_INCLUDE_DIRS})
target_link_libraries(gimbal_python PRIVATE gimbal_tensors)
gimbal_decoders_in_shared_library(gimbal_python)
# Its init function and no other symbol: neither gimbal's nor the standard library's meet those of other modules.
file(CONFIGURE OUTPUT python/module.map CONTENT "{ global: PyInit__gimbal; local: *; };\n")
target_link_options(gimbal_python PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/python/module.map -Wl,--gc-sections -static-libstdc++ -static-libgcc)
set_target_properties(gimbal_python PROPERTIES PREFIX "" OUTPUT_NAME _gimbal SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/gimbal)
file(GLOB package CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/gimbal/*.py ${CMAKE_SOURCE_DIR}/python/gimbal/*.pyi ${CMAKE_SOURCE_DIR}/python/gimbal/py.typed)
foreach(file ${package})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${CMAKE_BINARY_DIR}/python/gimbal/${name} SYMBOLIC COPY_ON_ERROR)
endforeach()
