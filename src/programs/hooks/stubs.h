/* Functions made at run time: each stands before an original, and asks a handler first.
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

/* What a call brought. A handler that does the call itself puts the result where the
 * ABI has it: `result`, or floating[0] and floating[1]. */
struct tf_call {
    int64_t integers[TF_INTEGER_REGISTERS]; /* and pointers */
    int64_t result;
    struct tf_stub *stub;
    double floating[8][2]; /* 16 bytes a register */
    const int64_t *stack;  /* integers beyond those in registers */
    int64_t kept;          /* of the stub itself */
};

/* Returns nonzero if it has done the call; 0: the original is to do it. */
typedef int tf_handler_fn(struct tf_stub *stub, struct tf_call *call);

struct tf_stub {
    void *original;
    tf_handler_fn *handler; /* NULL: none */
    void *facts;            /* the handler's */
    char padding[40];       /* to 64 bytes: the stub finds it by its number */
};

/* Returns a new function before `original`, without a handler, and its record; NULL if
 * there are no more (8192), or none on this platform. */
void *tf_stub_new(void *original, struct tf_stub **stub);

/* The function of a record. */
void *tf_stub_address(const struct tf_stub *stub);

/* Calls the original with what the call brought, 32 words of the stack included, and
 * puts what it returns into `call`. */
void tf_stub_call(struct tf_call *call);

/* Whether an address is a stub's. */
int tf_is_stub(const void *address);

/* Sets a handler, or with NULL takes it away, while other threads may call. */
void tf_stub_set(struct tf_stub *stub, tf_handler_fn *handler);

#endif
