/* Writes jumps over the first instructions of functions. */
#define _POSIX_C_SOURCE 200112L /* mprotect, sysconf */

#include "programs/hooks/jumps.h"

#include "programs/hooks/stubs.h"

#if TF_HAVE_STUBS

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int tf_jump(void *function, const void *to)
{
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)function & ~(size - 1);
    const uintptr_t end = ((uintptr_t)function + TF_JUMP + size - 1) & ~(size - 1);
    unsigned char jump[TF_JUMP];
#if defined(__aarch64__)
    const uint32_t code[] = {0x58000051, 0xD61F0220}; /* ldr x17, 8; br x17 */
#else
    const unsigned char code[] = {0xFF, 0x25, 0, 0, 0, 0}; /* jmp *(%rip) */
#endif
    memcpy(jump, code, sizeof code);
    memcpy(jump + sizeof code, &to, sizeof to);
    if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        return -1;
    }
    memcpy(function, jump, sizeof jump);
    mprotect((void *)begin, end - begin, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)function, (char *)function + TF_JUMP);
    return 0;
}

#else

int tf_jump(void *function, const void *to)
{
    (void)function;
    (void)to;
    return -1;
}

#endif
