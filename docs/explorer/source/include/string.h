/* What of the C library's header the C here uses; freestanding.c has it. */
#ifndef EXPLORER_STRING_H
#define EXPLORER_STRING_H

#include <stddef.h>

/* A compiler that may not assume a C library would call it for four bytes. */
#define memcpy __builtin_memcpy

size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

#endif
