# The decoders of pictures and sounds, linked statically: programs need nothing but the C library. scripts/setup.sh names their packages, and
# gimbalConfig.cmake.in finds them again for programs that link the library.
find_library(GIMBAL_JPEG_LIBRARY libjpeg.a REQUIRED)
find_library(GIMBAL_PNG16_LIBRARY libpng16.a REQUIRED)
find_library(GIMBAL_WEBPDEMUX_LIBRARY libwebpdemux.a REQUIRED)
find_library(GIMBAL_WEBP_LIBRARY libwebp.a REQUIRED)
find_library(GIMBAL_GIF_LIBRARY libgif.a REQUIRED)
find_library(GIMBAL_FLAC_LIBRARY libFLAC.a REQUIRED)
find_library(GIMBAL_OGG_LIBRARY libogg.a REQUIRED)
foreach(name jpeg png16 zlib webpdemux webp gif flac ogg)  # each before those that it uses
  string(TOUPPER ${name} upper)
  target_link_libraries(gimbal_media PUBLIC $<BUILD_INTERFACE:${GIMBAL_${upper}_LIBRARY}> $<INSTALL_INTERFACE:gimbal::${name}>)
endforeach()
target_link_libraries(gimbal_media PUBLIC ${CMAKE_DL_LIBS})  # libmpg123 is opened at run time

# For shared libraries that hold these archives: src/media/shared_stderr.cpp says why. Elsewhere archives are compiled for any use.
function(gimbal_decoders_in_shared_library target)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(${target} PRIVATE -Wl,-u,gimbal_decoders_stderr -Wl,--defsym=stderr=gimbal_decoders_stderr)
  endif()
endfunction()
