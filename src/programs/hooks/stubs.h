/* Stubs: functions that are called instead of an original, and that call a handler first.
 *
 * A stub keeps all registers, so that it fits any function. Without a handler it jumps
 * to the original, which costs about a nanosecond.
 */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_STUBS_H
#define TF32DTYPE_PROGRAMS_HOOKS_STUBS_H

#include <stdint.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define TF_HAVE_STUBS 1
#else
#define TF_HAVE_STUBS 0
#endif

#if defined(__aarch64__)
enum { TF_INTEGER_REGISTERS = 8 };
#else
enum { TF_INTEGER_REGISTERS = 6 };
#endif

/* The arguments of a call. A handler that does the call itself puts the result where the
 * ABI returns it: into `result`, or into floating[0] and floating[1]. */
struct tf_call {
    int64_t integers[TF_INTEGER_REGISTERS]; /* and pointers */
    int64_t result;
    struct tf_stub *stub;
    double floating[8][2]; /* 16 bytes per register */
    const int64_t *stack;  /* integers after those in registers */
    int64_t kept;          /* for the stub itself */
};

/* Returns nonzero if the handler has done the call; 0 if the stub is to call the
 * original. */
typedef int tf_handler_fn(struct tf_stub *stub, struct tf_call *call);

struct tf_stub {
    void *original;
    tf_handler_fn *handler; /* or NULL */
    void *facts;            /* data for the handler */
    char padding[40];       /* to 64 bytes: a stub finds its record by a shift */
};

/* Returns a new stub before `original`, without a handler, and writes its record to `stub`.
 * Returns NULL after 8192 stubs, or if this platform has no stubs. */
void *tf_stub_new(void *original, struct tf_stub **stub);

/* Returns the function of a record. */
void *tf_stub_address(const struct tf_stub *stub);

/* Calls the original with the arguments in `call`, including 32 words of the stack, and
 * writes the returned values to `call`. */
void tf_stub_call(struct tf_call *call);

/* Returns whether an address is that of a stub. */
int tf_is_stub(const void *address);

/* Sets the handler of a stub, or removes it if `handler` is NULL. Other threads may call
 * the stub meanwhile. */
void tf_stub_set(struct tf_stub *stub, tf_handler_fn *handler);

#endif
