/* Places the web page in the program's read-only data, as it is sent: compressed. web/ has its sources, and
   cmake/assets.cmake gives the paths. src/model/embedded_model.S tells why this is done in assembly. */
        .section .rodata.gimbal_page, "a", %progbits

        .globl  gimbal_page
        .hidden gimbal_page
        .type   gimbal_page, %object
gimbal_page:
        .incbin GIMBAL_PAGE_FILE
.Lpage_end:
        .size   gimbal_page, .Lpage_end - gimbal_page

        .globl  gimbal_page_policy
        .hidden gimbal_page_policy
        .type   gimbal_page_policy, %object
gimbal_page_policy:
        .incbin GIMBAL_PAGE_POLICY_FILE
.Lpolicy_end:
        .size   gimbal_page_policy, .Lpolicy_end - gimbal_page_policy

        .globl  gimbal_page_sizes
        .hidden gimbal_page_sizes
        .type   gimbal_page_sizes, %object
        .balign 8
gimbal_page_sizes:
        .quad   .Lpage_end - gimbal_page, .Lpolicy_end - gimbal_page_policy
        .size   gimbal_page_sizes, 16

        /* Without this note the linker would make the stack executable. */
        .section .note.GNU-stack, "", %progbits
