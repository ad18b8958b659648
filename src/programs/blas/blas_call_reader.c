/* Reads arguments that are passed by reference or by value, 32 or 64 bits wide. */
#include "programs/blas/blas_call_reader.h"

#include <ctype.h>
#include <string.h>

/* Fortran's BLAS has no letter for ConjNoTrans ('R'). */
const struct tf_blas_option tf_blas_trans = {111, "NTCR", "NTC"};
const struct tf_blas_option tf_blas_uplo = {121, "UL", "UL"};
const struct tf_blas_option tf_blas_diag = {131, "NU", "NU"};
const struct tf_blas_option tf_blas_side = {141, "LR", "LR"};

static int64_t next_word(struct tf_blas_reader *reader)
{
    const struct tf_blas_arguments *given = reader->arguments;
    const int i = reader->words++;
    return i < given->in_registers ? given->registers[i]
                                   : given->stack[i - given->in_registers];
}

void *tf_blas_read_pointer(struct tf_blas_reader *reader)
{
    return (void *)(intptr_t)next_word(reader);
}

ptrdiff_t tf_blas_integer_at(const struct tf_blas_reader *reader, const void *array,
                             ptrdiff_t index)
{
    return reader->name->wide ? (ptrdiff_t)((const int64_t *)array)[index]
                              : ((const int32_t *)array)[index];
}

ptrdiff_t tf_blas_read_integer(struct tf_blas_reader *reader)
{
    if (!reader->name->cblas) {
        return tf_blas_integer_at(reader, tf_blas_read_pointer(reader), 0);
    }
    /* The upper half of a register with a 32-bit integer is arbitrary. */
    const int64_t word = next_word(reader);
    return reader->name->wide ? (ptrdiff_t)word : (int32_t)word;
}

char tf_blas_option_of(struct tf_blas_reader *reader, const struct tf_blas_option *option,
                       int32_t number)
{
    if (!reader->name->cblas) {
        const char letter = (char)toupper((unsigned char)number);
        if (letter && strchr(option->fortran, letter)) {
            return letter;
        }
    } else if (number >= option->first &&
               number - option->first < (int)strlen(option->letters)) {
        return option->letters[number - option->first];
    }
    reader->wrong = 1;
    return 0;
}

char tf_blas_read_option(struct tf_blas_reader *reader,
                         const struct tf_blas_option *option)
{
    const int32_t given = reader->name->cblas
                              ? (int32_t)next_word(reader)
                              : *(const char *)tf_blas_read_pointer(reader);
    return tf_blas_option_of(reader, option, given);
}

void tf_blas_read_order(struct tf_blas_reader *reader)
{
    enum { ROW_MAJOR = 101, COLUMN_MAJOR };
    if (!reader->name->cblas) {
        return;
    }
    const int32_t order = (int32_t)next_word(reader);
    reader->row_major = order == ROW_MAJOR;
    reader->wrong |= order != ROW_MAJOR && order != COLUMN_MAJOR;
}

struct tf_blas_stored tf_blas_read_stored(struct tf_blas_reader *reader)
{
    struct tf_blas_stored stored;
    stored.data = tf_blas_read_pointer(reader);
    stored.ld = tf_blas_read_integer(reader);
    return stored;
}

static double number_at(char type, const void *array, ptrdiff_t index)
{
    float single; /* its address may be that of a register stored as a double */
    if (type == 's' || type == 'c') {
        memcpy(&single, (const float *)array + index, sizeof single);
        return single;
    }
    return ((const double *)array)[index];
}

void tf_blas_scalar_at(char type, const void *array, ptrdiff_t index, double out[2])
{
    const int numbers = tf_blas_is_complex(type) ? 2 : 1;
    out[0] = number_at(type, array, index * numbers);
    out[1] = numbers == 2 ? number_at(type, array, index * numbers + 1) : 0;
}

void tf_blas_read_scalar(struct tf_blas_reader *reader, int real, double out[2])
{
    const char type = reader->name->type;
    real |= !tf_blas_is_complex(type);
    if (!real) {
        tf_blas_scalar_at(type, tf_blas_read_pointer(reader), 0, out);
        return;
    }
    const void *number = reader->name->cblas
                             ? &reader->arguments->floating[reader->floats++]
                             : tf_blas_read_pointer(reader);
    out[0] = number_at(type, number, 0);
    out[1] = 0;
}

/* -- matrices -------------------------------------------------------------------- */

struct tf_blas_matrix tf_blas_matrix_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t rows,
                                        ptrdiff_t columns)
{
    const ptrdiff_t size = tf_blas_item_size(reader->name->type);
    const int along = reader->row_major;
    const ptrdiff_t least = along ? columns : rows;
    reader->wrong |= rows < 0 || columns < 0 || stored.ld < 1 || stored.ld < least;
    struct tf_blas_matrix x = {.data = stored.data, .rows = rows, .columns = columns};
    x.strides[along] = size;
    x.strides[!along] = stored.ld * size;
    return x;
}

struct tf_blas_matrix tf_blas_vector_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t n)
{
    const ptrdiff_t stride = stored.ld * tf_blas_item_size(reader->name->type);
    const ptrdiff_t first = stored.ld < 0 && n > 0 ? (1 - n) * stride : 0;
    return (struct tf_blas_matrix){.data = stored.data + first,
                                   .strides = {stride, 0},
                                   .rows = n,
                                   .columns = 1};
}

struct tf_blas_matrix tf_blas_triangle_of(struct tf_blas_reader *reader,
                                          struct tf_blas_stored stored, ptrdiff_t n,
                                          int shape, char uplo)
{
    struct tf_blas_matrix x = tf_blas_matrix_of(reader, stored, n, n);
    x.shape = shape;
    x.upper = uplo == 'U';
    return x;
}

struct tf_blas_matrix tf_blas_under(struct tf_blas_matrix x, char trans,
                                    const struct tf_blas_reader *reader)
{
    if (trans == 'T' || trans == 'C') {
        x = tf_blas_transposed(x);
    }
    if (tf_blas_is_complex(reader->name->type)) {
        x.conjugate ^= trans == 'C' || trans == 'R';
    }
    return x;
}

struct tf_blas_matrix tf_blas_operand_of(struct tf_blas_reader *reader,
                                         struct tf_blas_stored stored, char trans,
                                         ptrdiff_t m, ptrdiff_t n)
{
    const int across = trans == 'T' || trans == 'C';
    const struct tf_blas_matrix x =
        tf_blas_matrix_of(reader, stored, across ? n : m, across ? m : n);
    return tf_blas_under(x, trans, reader);
}
