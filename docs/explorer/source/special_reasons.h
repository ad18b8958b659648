/* Why a group of a tensor core is Inf or NaN, in words. */
#ifndef EXPLORER_SPECIAL_REASONS_H
#define EXPLORER_SPECIAL_REASONS_H

#include <stdint.h>

/* Texts, as members of an open list: those that make it NaN; if none does, Inf of both
 * signs, or all of one. a and b are of the k in `ks`. */
void write_reasons(const uint32_t *a, const uint32_t *b, const int32_t *ks, int32_t count,
                   uint32_t c);

#endif
