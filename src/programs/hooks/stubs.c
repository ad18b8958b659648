/* A pool of stubs in assembler, since C has no jump that keeps all registers. */
#include "programs/hooks/stubs.h"

#include <stdatomic.h>
#include <stddef.h>

#if TF_HAVE_STUBS

enum { STUBS = 8192, STUB_BYTES = 16 };
#define STUBS_TEXT "8192"

__attribute__((visibility("hidden"))) struct tf_stub tf_stub_records[STUBS];
extern char tf_stub_pool[] __attribute__((visibility("hidden")));

_Static_assert(sizeof(struct tf_stub) == 64, "a stub finds its record by a shift");
_Static_assert(offsetof(struct tf_stub, original) == 0, "as the assembler has it");
_Static_assert(offsetof(struct tf_stub, handler) == 8, "as the assembler has it");

/* A stub puts its address or number into a register that calls may change, and jumps to
 * tf_stub_common. tf_stub_common finds the record, and jumps to the original if the record
 * has no handler. Otherwise it saves the argument registers as a struct tf_call, and calls
 * the handler. */
#if defined(__x86_64__)

_Static_assert(offsetof(struct tf_call, result) == 48, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, stub) == 56, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, floating) == 64, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, stack) == 192, "as the assembler has it");
_Static_assert(sizeof(struct tf_call) == 208, "as the assembler has it");

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden tf_stub_pool\n"
        ".globl tf_stub_pool\n"
        "tf_stub_pool:\n"
        ".rept " STUBS_TEXT "\n"
        ".p2align 4\n"
        "endbr64\n"
        "leaq -11(%rip), %r11\n" /* the stub: these bytes are the same in all stubs */
        "jmp tf_stub_common\n"
        ".endr\n"
        ".type tf_stub_common, @function\n"
        "tf_stub_common:\n"
        ".cfi_startproc\n"
        "leaq tf_stub_pool(%rip), %r10\n"
        "subq %r10, %r11\n"
        "shlq $2, %r11\n"
        "leaq tf_stub_records(%rip), %r10\n"
        "addq %r10, %r11\n"
        "movq 8(%r11), %r10\n"
        "testq %r10, %r10\n"
        "jne 1f\n"
        "jmp *(%r11)\n"
        "1:\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "subq $208, %rsp\n"
        "movq %rdi, 0(%rsp)\n"
        "movq %rsi, 8(%rsp)\n"
        "movq %rdx, 16(%rsp)\n"
        "movq %rcx, 24(%rsp)\n"
        "movq %r8, 32(%rsp)\n"
        "movq %r9, 40(%rsp)\n"
        "movq %rax, 48(%rsp)\n"
        "movq %r11, 56(%rsp)\n"
        "movaps %xmm0, 64(%rsp)\n"
        "movaps %xmm1, 80(%rsp)\n"
        "movaps %xmm2, 96(%rsp)\n"
        "movaps %xmm3, 112(%rsp)\n"
        "movaps %xmm4, 128(%rsp)\n"
        "movaps %xmm5, 144(%rsp)\n"
        "movaps %xmm6, 160(%rsp)\n"
        "movaps %xmm7, 176(%rsp)\n"
        "leaq 16(%rbp), %rax\n"
        "movq %rax, 192(%rsp)\n"
        "movq %r11, %rdi\n"
        "movq %rsp, %rsi\n"
        "call *%r10\n"
        "testl %eax, %eax\n"
        "movq 48(%rsp), %rax\n"
        "movq 56(%rsp), %r11\n"
        "movaps 64(%rsp), %xmm0\n"
        "movaps 80(%rsp), %xmm1\n"
        "jne 2f\n"
        "movq 0(%rsp), %rdi\n"
        "movq 8(%rsp), %rsi\n"
        "movq 16(%rsp), %rdx\n"
        "movq 24(%rsp), %rcx\n"
        "movq 32(%rsp), %r8\n"
        "movq 40(%rsp), %r9\n"
        "movaps 96(%rsp), %xmm2\n"
        "movaps 112(%rsp), %xmm3\n"
        "movaps 128(%rsp), %xmm4\n"
        "movaps 144(%rsp), %xmm5\n"
        "movaps 160(%rsp), %xmm6\n"
        "movaps 176(%rsp), %xmm7\n"
        "leave\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa %rsp, 8\n"
        "jmp *(%r11)\n"
        ".cfi_restore_state\n"
        "2:\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size tf_stub_common, . - tf_stub_common\n"
        ".hidden tf_stub_call\n"
        ".globl tf_stub_call\n"
        ".type tf_stub_call, @function\n"
        "tf_stub_call:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "pushq %rbx\n"
        ".cfi_offset %rbx, -24\n"
        "subq $264, %rsp\n"
        "movq %rdi, %rbx\n"
        "movq 192(%rbx), %rsi\n"
        "movq %rsp, %rdi\n"
        "movl $32, %ecx\n"
        "rep movsq\n"
        "movaps 64(%rbx), %xmm0\n"
        "movaps 80(%rbx), %xmm1\n"
        "movaps 96(%rbx), %xmm2\n"
        "movaps 112(%rbx), %xmm3\n"
        "movaps 128(%rbx), %xmm4\n"
        "movaps 144(%rbx), %xmm5\n"
        "movaps 160(%rbx), %xmm6\n"
        "movaps 176(%rbx), %xmm7\n"
        "movq 0(%rbx), %rdi\n"
        "movq 8(%rbx), %rsi\n"
        "movq 16(%rbx), %rdx\n"
        "movq 24(%rbx), %rcx\n"
        "movq 32(%rbx), %r8\n"
        "movq 40(%rbx), %r9\n"
        "movq 48(%rbx), %rax\n"
        "movq 56(%rbx), %r11\n"
        "call *(%r11)\n"
        "movq %rax, 48(%rbx)\n"
        "movaps %xmm0, 64(%rbx)\n"
        "movaps %xmm1, 80(%rbx)\n"
        "movq -8(%rbp), %rbx\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size tf_stub_call, . - tf_stub_call\n");

#else /* AArch64 */

_Static_assert(offsetof(struct tf_call, result) == 64, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, stub) == 72, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, floating) == 80, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, stack) == 208, "as the assembler has it");
_Static_assert(offsetof(struct tf_call, kept) == 216, "as the assembler has it");
_Static_assert(sizeof(struct tf_call) == 224, "as the assembler has it");

/* The frame: x29 and x30, then the struct tf_call at sp + 16. */
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden tf_stub_pool\n"
        ".globl tf_stub_pool\n"
        "tf_stub_pool:\n"
        ".set tf_stub_number, 0\n"
        ".rept " STUBS_TEXT "\n"
        ".p2align 4\n"
        "hint #34\n" /* bti c */
        "movz w16, #tf_stub_number\n"
        "b tf_stub_common\n"
        ".set tf_stub_number, tf_stub_number + 1\n"
        ".endr\n"
        ".type tf_stub_common, %function\n"
        "tf_stub_common:\n"
        ".cfi_startproc\n"
        "adrp x17, tf_stub_records\n"
        "add x17, x17, :lo12:tf_stub_records\n"
        "add x16, x17, x16, lsl #6\n"
        "ldr x17, [x16, #8]\n"
        "cbnz x17, 1f\n"
        "ldr x17, [x16]\n"
        "br x17\n"
        "1:\n"
        "stp x29, x30, [sp, #-240]!\n"
        ".cfi_def_cfa_offset 240\n"
        ".cfi_offset 29, -240\n"
        ".cfi_offset 30, -232\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "stp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\n"
        "str x0, [sp, #80]\n"
        "str x16, [sp, #88]\n"
        "stp q0, q1, [sp, #96]\n"
        "stp q2, q3, [sp, #128]\n"
        "stp q4, q5, [sp, #160]\n"
        "stp q6, q7, [sp, #192]\n"
        "add x9, sp, #240\n"
        "str x9, [sp, #224]\n"
        "str x8, [sp, #232]\n"
        "mov x0, x16\n"
        "add x1, sp, #16\n"
        "blr x17\n"
        "mov w9, w0\n"
        "ldp q0, q1, [sp, #96]\n"
        "ldr x0, [sp, #80]\n"
        "cbnz w9, 2f\n"
        "ldr x16, [sp, #88]\n"
        "ldr x8, [sp, #232]\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x2, x3, [sp, #32]\n"
        "ldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\n"
        "ldp q2, q3, [sp, #128]\n"
        "ldp q4, q5, [sp, #160]\n"
        "ldp q6, q7, [sp, #192]\n"
        "ldp x29, x30, [sp], #240\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa sp, 0\n"
        ".cfi_restore 29\n"
        ".cfi_restore 30\n"
        "ldr x17, [x16]\n"
        "br x17\n"
        ".cfi_restore_state\n"
        "2:\n"
        "ldp x29, x30, [sp], #240\n"
        ".cfi_def_cfa sp, 0\n"
        ".cfi_restore 29\n"
        ".cfi_restore 30\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size tf_stub_common, . - tf_stub_common\n"
        ".hidden tf_stub_call\n"
        ".globl tf_stub_call\n"
        ".type tf_stub_call, %function\n"
        "tf_stub_call:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x29, x30, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset 29, -32\n"
        ".cfi_offset 30, -24\n"
        "mov x29, sp\n"
        ".cfi_def_cfa_register 29\n"
        "str x19, [sp, #16]\n"
        ".cfi_offset 19, -16\n"
        "sub sp, sp, #256\n"
        "mov x19, x0\n"
        "ldr x9, [x19, #208]\n"
        "mov x10, sp\n"
        "add x11, sp, #256\n"
        "1:\n"
        "ldp x12, x13, [x9], #16\n"
        "stp x12, x13, [x10], #16\n"
        "cmp x10, x11\n"
        "b.ne 1b\n"
        "add x9, x19, #80\n"
        "ldp q0, q1, [x9]\n"
        "ldp q2, q3, [x9, #32]\n"
        "ldp q4, q5, [x9, #64]\n"
        "ldp q6, q7, [x9, #96]\n"
        "ldp x0, x1, [x19]\n"
        "ldp x2, x3, [x19, #16]\n"
        "ldp x4, x5, [x19, #32]\n"
        "ldp x6, x7, [x19, #48]\n"
        "ldr x8, [x19, #216]\n"
        "ldr x16, [x19, #72]\n"
        "ldr x17, [x16]\n"
        "blr x17\n"
        "str x0, [x19, #64]\n"
        "add x9, x19, #80\n"
        "stp q0, q1, [x9]\n"
        "mov sp, x29\n"
        "ldr x19, [sp, #16]\n"
        "ldp x29, x30, [sp], #32\n"
        ".cfi_def_cfa sp, 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size tf_stub_call, . - tf_stub_call\n");

#endif

_Static_assert(STUBS * STUB_BYTES == 1 << 17, "STUBS_TEXT says the same");

void *tf_stub_new(void *original, struct tf_stub **stub)
{
    static atomic_int taken;
    const int number = atomic_fetch_add(&taken, 1);
    if (number >= STUBS) {
        atomic_store(&taken, STUBS);
        return NULL;
    }
    tf_stub_records[number].original = original;
    *stub = &tf_stub_records[number];
    return tf_stub_address(*stub);
}

void *tf_stub_address(const struct tf_stub *stub)
{
    return tf_stub_pool + (stub - tf_stub_records) * STUB_BYTES;
}

int tf_is_stub(const void *address)
{
    const char *pool = tf_stub_pool;
    return (const char *)address >= pool &&
           (const char *)address < pool + STUBS * STUB_BYTES;
}

#else

void *tf_stub_new(void *original, struct tf_stub **stub)
{
    (void)original;
    (void)stub;
    return NULL;
}

void *tf_stub_address(const struct tf_stub *stub)
{
    (void)stub;
    return NULL;
}

int tf_is_stub(const void *address)
{
    (void)address;
    return 0;
}

void tf_stub_call(struct tf_call *call) { (void)call; }

#endif

void tf_stub_set(struct tf_stub *stub, tf_handler_fn *handler)
{
    __atomic_store_n(&stub->handler, handler, __ATOMIC_RELEASE);
}
