/* The functions of a C library that compilers and headers of src/ call, since the module
 * has no C library. */
#include <stdint.h>
#include <string.h>

#include "blocks/dequantize.h"

/* Compilers insert calls of memcpy and memset. */
#undef memcpy
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);

void *memcpy(void *to, const void *from, size_t n)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i < n; i++) {
        t[i] = f[i];
    }
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    uint8_t *t = to;
    for (size_t i = 0; i < n; i++) {
        t[i] = (uint8_t)byte;
    }
    return to;
}

size_t strlen(const char *text)
{
    size_t n = 0;
    while (text[n]) {
        n++;
    }
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

/* Returns x y + z, rounded once. The product is exact in double. The sum is rounded
 * to odd in double, so that its rounding to float gives the same result as that of
 * the exact sum. */
float fmaf(float x, float y, float z);

float fmaf(float x, float y, float z)
{
    const double product = (double)x * (double)y, sum = product + (double)z;
    if (product - product != 0 || z - z != 0) {
        return (float)sum; /* Inf or NaN */
    }
    return (float)tf_sum_to_odd(product, (double)z);
}
