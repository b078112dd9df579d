# Files that become part of the program.

# The default model: the assembly file that includes it is rebuilt when the model changes, not only when it does.
set(GIMBAL_EMBEDDED_MODEL_FILE ${CMAKE_SOURCE_DIR}/assets/stories260K.gguf)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/model/embedded_model.S PROPERTIES
  COMPILE_DEFINITIONS "GIMBAL_EMBEDDED_MODEL_FILE=\"${GIMBAL_EMBEDDED_MODEL_FILE}\""
  OBJECT_DEPENDS ${GIMBAL_EMBEDDED_MODEL_FILE})
