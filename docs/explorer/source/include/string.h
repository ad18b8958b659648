/* The functions of C's string.h that this module uses; freestanding.c defines them. */
#ifndef EXPLORER_STRING_H
#define EXPLORER_STRING_H

#include <stddef.h>

/* Use the builtin: a freestanding compiler would otherwise call memcpy even for 4 bytes. */
#define memcpy __builtin_memcpy

size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

#endif
