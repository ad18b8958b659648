/* Describes why the result of a tensor core's group is Inf or NaN. */
#ifndef EXPLORER_SPECIAL_REASONS_H
#define EXPLORER_SPECIAL_REASONS_H

#include <stdint.h>

/* Writes strings into an open list: the operands that make the sum NaN; if none does,
 * one Inf of each sign if both occur, otherwise all Inf. `ks` are `count` indices in
 * a and b. */
void write_reasons(const uint32_t *a, const uint32_t *b, const int32_t *ks, int32_t count,
                   uint32_t c);

#endif
