/* Sorts with several engines. A radix sort moves words that pack a key above its item or
 * index; it is stable and takes all items. A counting sort, for arrays of at least as many
 * items as there are codes, counts how often each code occurs and writes the codes again.
 * It is four to ten times as fast, in constant memory, but needs items that their code
 * describes completely. Bytes are always counted, with unused bits. Shorter arrays of two
 * or four bytes become integers, which NumPy sorts in vectors, and return, without NaN if a
 * negative one would come first. NumPy also sorts words of a few indices. */
#include "ufuncs/sort.h"

#include <stdlib.h>
#include <string.h>

#include "formats/byte_tables.h"
#include "formats/float_bits.h"
#include "runtime/sizes.h"

enum {
    PAYLOAD_BITS = 44, /* an item or an index; the key has at most 19 bits */
    FEW = 32,          /* up to this count insertion beats the radix sort's tables */
    SHORT = 4096,      /* up to this count small tables beat few passes */
    MOST_DIGITS = 3,
    DIGIT_VALUES = 1 << 10
};

_Static_assert(sizeof(size_t) == 8, "a packed word is a size_t, as indices are");

static uint32_t code_mask(struct tf_format f)
{
    return (UINT32_C(1) << f.width) - 1;
}

/* Returns the key to sort by in ascending order: the order's key, or its mirror image, in
 * which NaN has the largest key, too. */
TF_INLINE uint32_t sort_key(struct tf_format f, uint32_t code, int descending)
{
    const uint32_t greatest = tf_magnitude_mask(f) + tf_sign_mask(f);
    const uint32_t key = tf_order_key(f, code);
    return descending && !tf_is_nan(f, code) ? greatest - 1 - key : key;
}

/* -- radix sort ------------------------------------------------------------ */

#define PACK(type)                                                             \
    for (ptrdiff_t i = 0; i < count; i++) {                                    \
        const uint32_t item = ((const type *)items)[i];                        \
        const uint32_t code = item >> f.shift & code_mask(f);                  \
        const size_t key = sort_key(f, code, descending);                      \
        words[i] = key << PAYLOAD_BITS | (by_index ? (size_t)i : item);        \
    }

/* Makes one word per element: its key, and below the key its index or the item. */
TF_INLINE void pack(struct tf_format f, const void *items, ptrdiff_t count,
                 size_t *words, int by_index, int descending)
{
    switch (f.itemsize) {
    case 1: PACK(uint8_t) break;
    case 2: PACK(uint16_t) break;
    default: PACK(uint32_t) break;
    }
}

static void unpack(struct tf_format f, const size_t *words, ptrdiff_t count,
                   void *items)
{
    switch (f.itemsize) {
    case 1:
        for (ptrdiff_t i = 0; i < count; i++)
            ((uint8_t *)items)[i] = (uint8_t)words[i];
        break;
    case 2:
        for (ptrdiff_t i = 0; i < count; i++)
            ((uint16_t *)items)[i] = (uint16_t)words[i];
        break;
    default:
        for (ptrdiff_t i = 0; i < count; i++)
            ((uint32_t *)items)[i] = (uint32_t)words[i];
        break;
    }
}

static void insertion_sort(size_t *words, ptrdiff_t count)
{
    for (ptrdiff_t i = 1; i < count; i++) {
        const size_t word = words[i];
        ptrdiff_t j = i;
        for (; j > 0 && words[j - 1] >> PAYLOAD_BITS > word >> PAYLOAD_BITS; j--)
            words[j] = words[j - 1];
        words[j] = word;
    }
}

/* Sorts words, stably, least significant digit first. Both arrays have `count` words;
 * returns the one that has the result. */
static size_t *radix_sort(size_t *words, size_t *spare, ptrdiff_t count, int width)
{
    const int target = count < SHORT ? 7 : 10;
    const int digits = (int)tf_ceil_div(width, target);
    const int bits = (int)tf_ceil_div(width, digits);
    const size_t mask = ((size_t)1 << bits) - 1;
    size_t places[MOST_DIGITS][DIGIT_VALUES];

    for (int digit = 0; digit < digits; digit++)
        memset(places[digit], 0, (mask + 1) * sizeof(size_t));
    for (ptrdiff_t i = 0; i < count; i++)
        for (int digit = 0; digit < digits; digit++)
            places[digit][words[i] >> (PAYLOAD_BITS + digit * bits) & mask]++;

    for (int digit = 0; digit < digits; digit++) {
        const int shift = PAYLOAD_BITS + digit * bits;
        size_t *const place = places[digit];
        if (place[words[0] >> shift & mask] == (size_t)count)
            continue;
        size_t sum = 0;
        for (size_t value = 0; value <= mask; value++) {
            const size_t size = place[value];
            place[value] = sum;
            sum += size;
        }
        for (ptrdiff_t i = 0; i < count; i++)
            spare[place[words[i] >> shift & mask]++] = words[i];
        size_t *const sorted = spare;
        spare = words;
        words = sorted;
    }
    return words;
}

/* -- counting sort --------------------------------------------------------- */

/* Returns the table's size: one entry per pattern of a small item, else per code. */
static uint32_t pattern_count(struct tf_format f)
{
    return UINT32_C(1) << (f.itemsize < 4 ? 8 * f.itemsize : f.width);
}

/* Counts into the first `patterns` entries of `tables`, a machine word of items at a time.
 * Neighbors count in different tables, which are added at the end: if a pattern repeats, an
 * increment need not wait for the one before. Returns nonzero if an item has an unused bit
 * set. */
TF_INLINE int count_patterns(struct tf_format f, const void *items, ptrdiff_t count,
                          uint32_t *tables, int table_count, int itemsize)
{
    const int lanes = 8 / itemsize, item_bits = 8 * itemsize;
    const size_t patterns = itemsize < 4 ? (size_t)1 << item_bits : pattern_count(f);
    const int shift = itemsize < 4 ? 0 : f.shift;
    const unsigned char *at = items;
    uint64_t word = 0, seen = 0;

#define PATTERN(lane) (word >> ((lane) * item_bits + shift) & (patterns - 1))
    for (; count >= lanes; count -= lanes, at += 8) {
        memcpy(&word, at, 8);
        for (int lane = 0; lane < lanes; lane++)
            tables[(size_t)(lane % table_count) * patterns + PATTERN(lane)]++;
        seen |= word;
    }
    for (word = 0; count > 0; count--, at += itemsize) {
        memcpy(&word, at, (size_t)itemsize); /* little-endian */
        tables[PATTERN(0)]++;
        seen |= word;
    }
#undef PATTERN
    for (int table = 1; table < table_count; table++)
        for (size_t pattern = 0; pattern < patterns; pattern++)
            tables[pattern] += tables[(size_t)table * patterns + pattern];

    for (int lane = 1; lane < lanes; lane++)
        seen |= seen >> lane * item_bits;
    const uint64_t item_mask = UINT64_MAX >> (64 - item_bits);
    return (seen & item_mask & ~((uint64_t)code_mask(f) << f.shift)) != 0;
}

/* Returns the code of a rank in ascending order, but NaNs may be at both ends. */
static inline uint32_t code_of_rank(struct tf_format f, uint32_t rank)
{
    const uint32_t sign = tf_sign_mask(f);
    return rank < sign ? 2 * sign - 1 - rank : rank - sign;
}

/* Returns whether a zero or a NaN occurs with more than one code. */
static int has_equals(struct tf_format f, const uint32_t *table)
{
    const uint32_t codes = UINT32_C(1) << f.width;
    const uint32_t zero = tf_order_key(f, 0);
    int zeros = 0, nans = 0;
    for (uint32_t code = 0; code < codes; code++)
        if (table[code] != 0) {
            nans += tf_is_nan(f, code);
            zeros += tf_order_key(f, code) == zero;
        }
    return zeros > 1 || nans > 1;
}

/* Writes each code as often as it was counted: first the numbers, then the NaNs. */
#define FILL(type)                                                             \
    type *out = items;                                                         \
    for (int nan = 0; nan < 2 && out - (type *)items < count; nan++)           \
        for (uint32_t rank = 0; rank < codes; rank++) {                        \
            const uint32_t code =                                              \
                code_of_rank(f, descending ? codes - 1 - rank : rank);         \
            const uint32_t times = table[code];                                \
            if (times == 0 || tf_is_nan(f, code) != nan)                       \
                continue;                                                      \
            const type item = (type)(code << f.shift);                         \
            for (uint32_t i = 0; i < times; i++)                               \
                out[i] = item;                                                 \
            out += times;                                                      \
        }

static void fill(struct tf_format f, const uint32_t *table, void *items,
                 ptrdiff_t count, int descending)
{
    const uint32_t codes = UINT32_C(1) << f.width;
    switch (f.itemsize) {
    case 2: { FILL(uint16_t) break; }
    default: { FILL(uint32_t) break; }
    }
}

/* Returns 1 if the items are sorted, or 0 with items unchanged: memory is short, or unused
 * bits or equal codes in a stable sort must move with their items. */
static int counting_sort(struct tf_format f, void *items, ptrdiff_t count, int stable,
                         int descending)
{
    uint32_t *const table = calloc(2 * (size_t)pattern_count(f), sizeof *table);
    if (table == NULL)
        return 0;
    int keep;
    switch (f.itemsize) {
    case 2: keep = count_patterns(f, items, count, table, 2, 2); break;
    default: keep = count_patterns(f, items, count, table, 2, 4); break;
    }
    keep = keep || (stable && has_equals(f, table));
    if (!keep)
        fill(f, table, items, count, descending);
    free(table);
    return !keep;
}

/* -- bytes --------------------------------------------------------------------- */

/* Returns item i of all items of one byte in the order requested. */
TF_INLINE uint8_t byte_in_order(const struct tf_byte_table *table, int i, int descending)
{
    const int numbers = table->number_count;
    const int last = i < numbers ? numbers - 1 : 255 + numbers;
    return table->sequence[descending ? last - i : i];
}

/* Returns whether different items occur that are equal. */
static int has_equal_bytes(const struct tf_byte_table *table, const uint32_t *counts)
{
    const struct tf_byte_order order = tf_order_with_one_zero(table->order);
    int last = -1;
    for (int i = 0; i < 256; i++) {
        const uint8_t item = table->sequence[i], rank = tf_rank_of_byte(order, item);
        if (counts[item] != 0 && rank == last)
            return 1;
        last = counts[item] != 0 ? rank : last;
    }
    return 0;
}

/* Returns 1 if sorted, or 0 with items unchanged, if equal ones must keep their order. */
static int sort_bytes(struct tf_format f, const struct tf_byte_table *table,
                      uint8_t *items, ptrdiff_t count, int stable, int descending)
{
    uint32_t counts[4 * 256] = {0};
    count_patterns(f, items, count, counts, 4, 1);
    if (stable && has_equal_bytes(table, counts))
        return 0;
    enum { FEW_TIMES = 16 };
    const uint8_t *end = items + count;
    for (int i = 0; i < 256; i++) {
        const uint8_t item = byte_in_order(table, i, descending);
        const uint32_t times = counts[item];
        /* Most items occur rarely or never: later items overwrite the excess. */
        if (times <= FEW_TIMES && end - items >= FEW_TIMES)
            memset(items, item, FEW_TIMES);
        else
            memset(items, item, times);
        items += times;
    }
    return 1;
}

static void argsort_bytes(const struct tf_byte_table *table, const uint8_t *items,
                          ptrdiff_t *index, ptrdiff_t count, int descending)
{
    uint8_t keys[256];
    ptrdiff_t places[256] = {0};
    const struct tf_byte_order order = tf_order_with_one_zero(table->order);
    for (int i = 0; i < 256; i++) {
        const uint8_t rank = tf_rank_of_byte(order, (uint8_t)i);
        keys[i] = descending && rank != TF_RANK_OF_NAN ? (uint8_t)(254 - rank) : rank;
    }
    for (ptrdiff_t i = 0; i < count; i++)
        places[keys[items[i]]]++;
    ptrdiff_t sum = 0;
    for (int i = 0; i < 256; i++) {
        const ptrdiff_t size = places[i];
        places[i] = sum;
        sum += size;
    }
    for (ptrdiff_t i = 0; i < count; i++)
        index[places[keys[items[i]]]++] = i;
}

/* -- sorting as whole numbers ---------------------------------------------- */

static tf_integer_sort *sort_int16, *sort_int32, *sort_int64;

void tf_sort_integers_by(tf_integer_sort *int16, tf_integer_sort *int32,
                         tf_integer_sort *int64)
{
    sort_int16 = int16;
    sort_int32 = int32;
    sort_int64 = int64;
}

/* Sorts items as integers, if only the order of equal items can differ from the right one.
 * Sets aside NaN if integers would not bring them to the end, or not in their order.
 * `order` is its own inverse. */
#define SORT_INTEGERS(type, order, sort)                                       \
    type *const x = items;                                                     \
    const type least = (type)(UINT32_C(1) << (8 * sizeof(type) - 1)); /* -0 */ \
    const type infinity = (type)(tf_infinity_magnitude(f) << f.shift);         \
    const type stray = (type)((UINT32_C(1) << f.shift) - 1);                   \
    int negative_nan = 0, equals = 0;                                          \
    int nans = 0;                                                              \
    for (ptrdiff_t i = 0; i < count; i++) {                                    \
        const int nan = (type)(x[i] & ~least & ~stray) > infinity;             \
        negative_nan |= nan & (x[i] < 0);                                      \
        nans |= nan;                                                           \
        equals |= (nan ^ 1) & ((x[i] == least) | ((x[i] & stray) != 0));       \
    }                                                                          \
    if (!sort || (stable && equals))                                           \
        return 0;                                                              \
    ptrdiff_t numbers = count;                                                 \
    type *aside = NULL;                                                        \
    if (negative_nan || (stable && nans)) {                                    \
        aside = malloc((size_t)count * sizeof *aside);                         \
        if (!aside)                                                            \
            return 0;                                                          \
        numbers = 0;                                                           \
        for (ptrdiff_t i = 0; i < count; i++) {                                \
            const type item = x[i];                                            \
            const int nan = (type)(item & ~least & ~stray) > infinity;         \
            aside[i - numbers] = item;                                         \
            x[numbers] = item;                                                 \
            numbers += !nan;                                                   \
        }                                                                      \
    }                                                                          \
    for (ptrdiff_t i = 0; i < numbers; i++)                                    \
        x[i] = order(x[i]);                                                    \
    const int failed = sort(x, numbers, NULL) < 0;                             \
    for (ptrdiff_t i = 0; i < numbers; i++)                                    \
        x[i] = order(x[i]);                                                    \
    if (aside)                                                                 \
        memcpy(x + numbers, aside, (size_t)(count - numbers) * sizeof *aside); \
    free(aside);                                                               \
    return !failed;

/* Sorts as int32, of which NumPy has a sort with vectors for more processors. */
static int sort_as_words(void *items, ptrdiff_t count, void *unused)
{
    int16_t *const x = items;
    int32_t *const words = malloc((size_t)count * sizeof *words);
    if (!words)
        return -1;
    for (ptrdiff_t i = 0; i < count; i++)
        words[i] = x[i];
    const int failed = sort_int32(words, count, unused);
    for (ptrdiff_t i = 0; i < count; i++)
        x[i] = (int16_t)words[i];
    free(words);
    return failed;
}

static int32_t word_order(int32_t bits) { return tf_total_order((uint32_t)bits); }

/* Returns 1 if the items are sorted, or 0 with the items as before, except for the order of
 * equal ones. */
static int integer_sort(struct tf_format f, void *items, ptrdiff_t count, int stable)
{
    switch (f.itemsize) {
    case 2: {
        tf_integer_sort *const sort = sort_int16 ? sort_int16 : sort_as_words;
        SORT_INTEGERS(int16_t, tf_bf16_order, sort)
    }
    case 4: { SORT_INTEGERS(int32_t, word_order, sort_int32) }
    default: return 0;
    }
}

/* -- entries --------------------------------------------------------------- */

int tf_sort(int format, void *items, ptrdiff_t count, int stable,
            int descending)
{
    const struct tf_format f = *tf_format_rows[format];
    if (count <= FEW) {
        size_t words[FEW];
        pack(f, items, count, words, 0, descending);
        insertion_sort(words, count);
        unpack(f, words, count, items);
        return 0;
    }
    if (f.itemsize == 1 && count <= UINT32_MAX &&
        sort_bytes(f, &tf_byte_tables[format], items, count, stable,
                   descending))
        return 0;
    if (f.itemsize != 1 && count >= pattern_count(f) && count <= UINT32_MAX &&
        counting_sort(f, items, count, stable, descending))
        return 0;
    if (!descending && integer_sort(f, items, count, stable))
        return 0;
    size_t *const words = malloc(2 * (size_t)count * sizeof *words);
    if (words == NULL)
        return -1;
    pack(f, items, count, words, 0, descending);
    unpack(f, radix_sort(words, words + count, count, f.width), count, items);
    free(words);
    return 0;
}

int tf_argsort(int format, const void *items, ptrdiff_t *index, ptrdiff_t count,
               int descending)
{
    const struct tf_format f = *tf_format_rows[format];
    const size_t index_mask = ((size_t)1 << PAYLOAD_BITS) - 1;
    size_t *words = (size_t *)index, *spare = NULL;
    if (f.itemsize == 1 && count > FEW) {
        argsort_bytes(&tf_byte_tables[format], items, index, count,
                      descending);
        return 0;
    }
    const int are_few = count <= FEW || (count <= SHORT && sort_int64);
    if (!are_few) {
        spare = malloc((size_t)count * sizeof *spare);
        if (spare == NULL)
            return -1;
    }
    pack(f, items, count, words, 1, descending);
    if (count <= FEW)
        insertion_sort(words, count);
    else if (are_few) /* no two are equal, and none is negative */
        sort_int64(words, count, NULL);
    else
        words = radix_sort(words, spare, count, f.width);
    for (ptrdiff_t i = 0; i < count; i++)
        index[i] = (ptrdiff_t)(words[i] & index_mask);
    free(spare);
    return 0;
}

int tf_argsort_next(int format, const void *items, ptrdiff_t *index, ptrdiff_t count)
{
    const size_t size = tf_format_rows[format]->itemsize, n = (size_t)count;
    if (count <= 1)
        return 0;
    ptrdiff_t *const places = malloc(n * (2 * sizeof *places + size));
    if (places == NULL)
        return -1;
    ptrdiff_t *const before = places + n;
    char *const keys = (char *)(before + n);
    memcpy(before, index, n * sizeof *index);
    for (size_t i = 0; i < n; i++) {
        const char *item = (const char *)items + (size_t)index[i] * size;
        if (size == 1)
            keys[i] = *item;
        else
            memcpy(keys + i * size, item, size);
    }
    const int result = tf_argsort(format, keys, places, count, 0);
    for (size_t i = 0; result == 0 && i < n; i++)
        index[i] = before[places[i]];
    free(places);
    return result;
}
