/* Places the model file in the program's read-only data: the assembler copies it as it is, which takes no time,
   while a C array of a megabyte takes a compiler seconds. cmake/assets.cmake gives the path of the file.
   The spelling %progbits is the one that every ELF assembler takes. */
        .section .rodata.gimbal_embedded_model, "a", %progbits

        .globl  gimbal_embedded_model
        .hidden gimbal_embedded_model
        .type   gimbal_embedded_model, %object
        .balign 64
gimbal_embedded_model:
        .incbin GIMBAL_EMBEDDED_MODEL_FILE
.Lend:
        .size   gimbal_embedded_model, .Lend - gimbal_embedded_model

        .globl  gimbal_embedded_model_size
        .hidden gimbal_embedded_model_size
        .type   gimbal_embedded_model_size, %object
        .balign 8
gimbal_embedded_model_size:
        .quad   .Lend - gimbal_embedded_model
        .size   gimbal_embedded_model_size, 8

        /* Without this note the linker would make the stack executable. */
        .section .note.GNU-stack, "", %progbits
