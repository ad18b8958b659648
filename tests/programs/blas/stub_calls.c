/* Call a function through a stub without a handler, with one that passes the call on,
 * with one that makes the call, and with one that answers. Print arguments and result. */
#include <stdio.h>
#include <string.h>

#include "programs/hooks/stubs.h"

typedef double many(long, long, long, long, long, long, long, long, long, double, long,
                    float);

static double original(long a, long b, long c, long d, long e, long f, long g, long h,
                       long i, double x, long j, float y)
{
    printf("%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %g %g ", a, b, c, d, e, f, g, h, i, j,
           x, (double)y);
    return x * (double)y;
}

static int pass(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    (void)call;
    return 0;
}

static int make(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    tf_stub_call(call);
    return 1;
}

static int answer(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    call->floating[0][0] = 7;
    return 1;
}

int main(void)
{
    tf_handler_fn *const handlers[] = {NULL, pass, make, answer};
    many *plain = original, *stubbed;
    void *address;
    struct tf_stub *stub;
    memcpy(&address, &plain, sizeof address);
    address = tf_stub_new(address, &stub);
    memcpy(&stubbed, &address, sizeof address);
    for (int i = 0; i < 4; i++) {
        tf_stub_set(stub, handlers[i]);
        printf("%g\n", stubbed(1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 10, 2.5f));
    }
    return !tf_is_stub(address);
}
