/* Reports a broken precondition (TF_ASSERT) and ends the program. */
#include "runtime/asserts.h"

#if defined(TF_CHECKED)
#include <stdio.h>
#include <stdlib.h>

void tf_assert_failed(const char *file, int line, const char *function,
                      const char *condition)
{
    fprintf(stderr, "%s:%d: %s: %s does not hold\n", file, line, function, condition);
    abort();
}
#endif
