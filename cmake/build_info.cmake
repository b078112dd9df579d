# gimbal_tell_build_info(<source>): what --build-info tells of the configure step: the compiler, and every option of the project with its value.
function(gimbal_tell_build_info source)
  gimbal_known_options(options paths backends)
  list(REMOVE_ITEM options ${paths} GIMBAL_MERGE_TESTS)  # paths are of this machine, and tests are no part of the program
  set(values "")
  foreach(option IN LISTS options)
    if(DEFINED ${option})
      string(REPLACE ";" "," value "${${option}}")
      list(APPEND values "${option}=${value}")
    endif()
  endforeach()
  list(SORT values)
  list(JOIN values " " values)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS
    "GIMBAL_OPTIONS=\"${values}\";GIMBAL_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";GIMBAL_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"")
endfunction()
