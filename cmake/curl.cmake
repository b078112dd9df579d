# libcurl is opened at run time, by the few commands that fetch something: only its headers are needed here. They lie in a folder of
# their own in the build, because beside them are those of this machine's C library, which a build for another one must not see.
# PUBLIC: other layers include headers of this target that include curl.h.
function(gimbal_use_curl_headers target)
  find_path(GIMBAL_CURL_HEADERS curl/curl.h NO_CMAKE_FIND_ROOT_PATH PATH_SUFFIXES x86_64-linux-gnu aarch64-linux-gnu)
  if(NOT GIMBAL_CURL_HEADERS)
    message(FATAL_ERROR "curl/curl.h is not there. Install libcurl4-openssl-dev (scripts/setup.sh build does).")
  endif()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/curl-headers)
  file(CREATE_LINK ${GIMBAL_CURL_HEADERS}/curl ${CMAKE_BINARY_DIR}/curl-headers/curl SYMBOLIC)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/curl-headers>)
endfunction()
