/* The order of the items of a one-byte format, by arithmetic that compilers vectorize. */
#ifndef TF32DTYPE_FORMATS_BYTE_ORDER_H
#define TF32DTYPE_FORMATS_BYTE_ORDER_H

#include <stdint.h>

#include "runtime/inline.h"

/* The rank of NaN, above all numbers. A format has at most 255 numbers. */
enum { TF_RANK_OF_NAN = 255 };

/* How the items of a format map to ranks. The rank of the negative number with magnitude m
 * is `negative_zero` - m, and that of the positive one is `zero` + m. */
struct tf_byte_order {
    uint8_t magnitude, sign; /* the bits of each; an unsigned format has no `sign` */
    uint8_t first_special;   /* the smallest magnitude that is Inf or NaN, or 255 */
    uint8_t first_nan;       /* the smallest magnitude that is NaN, or 255 */
    uint8_t sign_is_nan;     /* 255 if the item that has only `sign` is NaN, or 0 */
    uint8_t negative_zero, zero;
    uint8_t nan; /* the canonical NaN */
};

/* Returns an order in which zeros of both signs have the same rank. */
TF_INLINE struct tf_byte_order tf_order_with_one_zero(struct tf_byte_order order)
{
    order.negative_zero = order.zero;
    return order;
}

TF_INLINE uint8_t tf_rank_of_byte(struct tf_byte_order order, uint8_t item)
{
    const uint8_t magnitude = item & order.magnitude, sign = item & order.sign;
    const uint8_t negative = (uint8_t)(order.negative_zero - magnitude);
    const uint8_t number = sign ? negative : (uint8_t)(order.zero + magnitude);
    const uint8_t if_nan = magnitude >= order.first_nan ? TF_RANK_OF_NAN : 0;
    return number | if_nan | (item == order.sign ? order.sign_is_nan : 0);
}

/* Returns the item of a rank, with no unused bit set; for NaN the canonical one. */
TF_INLINE uint8_t tf_byte_of_rank(struct tf_byte_order order, uint8_t rank)
{
    const uint8_t negative = order.sign | (uint8_t)(order.negative_zero - rank);
    const uint8_t number = rank < order.zero ? negative : (uint8_t)(rank - order.zero);
    return rank == TF_RANK_OF_NAN ? order.nan : number;
}

#endif
