# Files that become part of the program.

# The default model: the assembly file that includes it is rebuilt when the model changes, not only when it does.
set(GIMBAL_EMBEDDED_MODEL_FILE ${CMAKE_SOURCE_DIR}/assets/stories260K.gguf)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/model/embedded_model.S PROPERTIES
  COMPILE_DEFINITIONS "GIMBAL_EMBEDDED_MODEL_FILE=\"${GIMBAL_EMBEDDED_MODEL_FILE}\""
  OBJECT_DEPENDS ${GIMBAL_EMBEDDED_MODEL_FILE})

# The web page, which scripts/build/page.sh makes of web/: compressed, and the policy that it is sent with.
set(GIMBAL_PAGE_FILE ${CMAKE_SOURCE_DIR}/assets/page.html.gz)
set(GIMBAL_PAGE_POLICY_FILE ${CMAKE_SOURCE_DIR}/assets/page.policy)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/server/page/page_file.S PROPERTIES
  COMPILE_DEFINITIONS "GIMBAL_PAGE_FILE=\"${GIMBAL_PAGE_FILE}\";GIMBAL_PAGE_POLICY_FILE=\"${GIMBAL_PAGE_POLICY_FILE}\""
  OBJECT_DEPENDS "${GIMBAL_PAGE_FILE};${GIMBAL_PAGE_POLICY_FILE}")
