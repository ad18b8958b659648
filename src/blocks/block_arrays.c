/* Arrays of blocks. A call is cut into pieces of whole lines, which threads take, and the
 * loops of kernels/plain/quantize.c compute one piece. */
#include "blocks/block_arrays.h"

#include <stdlib.h>
#include <string.h>

#include "blocks/dequantize.h"
#include "blocks/kernels.h"
#include "runtime/asserts.h"
#include "runtime/sizes.h"
#include "runtime/streaming.h"
#include "runtime/thread_pool.h"

/* -- lines and pieces of them ------------------------------------------------------ */

/* Numbers that are worth another thread, and numbers that a thread takes at a time. */
enum { SHARE = 1 << 18, PIECE = 1 << 14 };

/* One call. If lines are whole blocks, they are joined to one long line. */
struct array_call {
    const struct tf_block_plan *plan;
    const struct tf_block_loops *loops;
    struct tf_block_lines lines;
    ptrdiff_t size;      /* numbers */
    ptrdiff_t blocks;    /* per line, including a short last one */
    ptrdiff_t pieces;    /* per line */
    ptrdiff_t per_piece; /* blocks */
    const float *x;
    const uint64_t *draws;
    struct tf_block_codes codes;
    float *out;
    double *doubles;
    int odd;
};

/* Some blocks of a call: `whole` ones, then a short one of `rest` numbers, or none. */
struct piece {
    ptrdiff_t item, block, whole, rest;
};

static struct array_call call_of(const struct tf_block_plan *plan,
                                 struct tf_block_lines lines)
{
    const ptrdiff_t n = plan->layout.block;
    TF_ASSERT(n > 0 && n <= TF_BLOCK_MOST && n % TF_BLOCK_LANES == 0);
    TF_ASSERT(plan->layout.element >= 0 && plan->layout.element < TF_ELEMENT_COUNT);
    struct array_call call = {.plan = plan, .lines = lines};
    call.size = lines.count * lines.length;
    call.loops = &tf_isa->blocks->loops[plan->layout.element];
    if (lines.length % n == 0) {
        call.lines.length *= lines.count;
        call.lines.count = 1;
    }
    call.blocks = tf_ceil_div(call.lines.length, n);
    call.per_piece = PIECE / n;
    call.pieces = tf_ceil_div(call.blocks, call.per_piece);
    return call;
}

static struct piece piece_of(const struct array_call *call, ptrdiff_t number)
{
    const ptrdiff_t n = call->plan->layout.block;
    const ptrdiff_t line = number / call->pieces, part = number % call->pieces;
    const ptrdiff_t from = part * call->per_piece;
    const ptrdiff_t left = call->lines.length - from * n;
    const ptrdiff_t most = call->per_piece * n, numbers = left < most ? left : most;
    const struct piece piece = {
        .item = line * call->lines.length + from * n,
        .block = line * call->blocks + from,
        .whole = numbers / n,
        .rest = numbers % n,
    };
    return piece;
}

static size_t bytes_of(const struct array_call *call, int element)
{
    return (size_t)(call->plan->layout.block * tf_elements[element].width / 8);
}

static struct tf_block_codes codes_from(const struct array_call *call, ptrdiff_t block)
{
    const int residual = call->plan->layout.residual;
    const size_t at = (size_t)block;
    struct tf_block_codes codes = call->codes;
    codes.codes += at * bytes_of(call, call->plan->layout.element);
    codes.scales += residual < 0 ? at : 2 * at;
    if (residual >= 0) {
        codes.residuals += at * bytes_of(call, residual);
    }
    return codes;
}

typedef void work_fn(const struct array_call *call, struct piece piece);

/* A call's pieces, in one run per thread, so that each thread writes to its own pages. */
struct runs {
    const struct array_call *call;
    work_fn *work;
    ptrdiff_t pieces, count;
};

static unsigned do_run(const void *context, ptrdiff_t run, struct tf_worker *own)
{
    const struct runs *runs = context;
    const ptrdiff_t size = tf_ceil_div(runs->pieces, runs->count), first = run * size;
    const ptrdiff_t left = runs->pieces - first, here = left < size ? left : size;
    for (ptrdiff_t i = 0; i < here && !tf_worker_stops(own); i++) {
        runs->work(runs->call, piece_of(runs->call, first + i));
    }
    return 0;
}

/* Computes all pieces of a call, and raises no flags. Returns 0 or -1: see
 * block_arrays.h. */
static int run(const struct array_call *call, work_fn *work)
{
    const ptrdiff_t pieces = call->lines.length ? call->lines.count * call->pieces : 0;
    const double numbers = (double)call->lines.count * (double)call->lines.length;
    const ptrdiff_t threads = tf_threads_for(numbers / SHARE);
    const struct runs runs = {call, work, pieces, threads < pieces ? threads : pieces};
    unsigned ignored = 0;
    return tf_do_tasks(do_run, &runs, runs.count, threads, &ignored);
}

/* -- quantize ---------------------------------------------------------------------- */

/* A short block, filled up with zeros. */
struct short_block {
    float x[TF_BLOCK_MOST];
    uint64_t draws[TF_BLOCK_MOST];
};

static void fill_short(const struct array_call *call, ptrdiff_t item, ptrdiff_t rest,
                       struct short_block *block)
{
    TF_ASSERT(rest > 0 && rest < call->plan->layout.block);
    memset(block, 0, sizeof *block);
    memcpy(block->x, call->x + item, (size_t)rest * sizeof *call->x);
    if (call->draws) {
        memcpy(block->draws, call->draws + item, (size_t)rest * sizeof *call->draws);
    }
}

static void quantize_piece(const struct array_call *call, struct piece p)
{
    const uint64_t *draws = call->draws ? call->draws + p.item : NULL;
    struct tf_block_codes out = codes_from(call, p.block);
    call->loops->quantize(call->plan, call->x + p.item, (size_t)p.whole, draws, out.codes,
                          out.scales, out.residuals);
    if (p.rest) {
        struct short_block block;
        fill_short(call, p.item + p.whole * call->plan->layout.block, p.rest, &block);
        out = codes_from(call, p.block + p.whole);
        call->loops->quantize(call->plan, block.x, 1, call->draws ? block.draws : NULL,
                              out.codes, out.scales, out.residuals);
    }
}

int tf_blocks_quantize(const struct tf_block_plan *plan, const float *x,
                        struct tf_block_lines lines, const uint64_t *draws,
                        struct tf_block_codes out)
{
    struct array_call call = call_of(plan, lines);
    call.x = x;
    call.draws = draws;
    call.codes = out;
    return run(&call, quantize_piece);
}

static void round_piece(const struct array_call *call, struct piece p)
{
    const uint64_t *draws = call->draws ? call->draws + p.item : NULL;
    call->loops->round(call->plan, call->x + p.item, (size_t)p.whole, draws,
                       call->out + p.item);
    if (p.rest) {
        const ptrdiff_t item = p.item + p.whole * call->plan->layout.block;
        struct short_block block;
        float out[TF_BLOCK_MOST];
        fill_short(call, item, p.rest, &block);
        call->loops->round(call->plan, block.x, 1, call->draws ? block.draws : NULL, out);
        memcpy(call->out + item, out, (size_t)p.rest * sizeof *out);
    }
}

int tf_blocks_round(const struct tf_block_plan *plan, const float *x,
                     struct tf_block_lines lines, const uint64_t *draws, float *out)
{
    struct array_call call = call_of(plan, lines);
    call.x = x;
    call.draws = draws;
    call.out = out;
    return run(&call, round_piece);
}

/* -- dequantize -------------------------------------------------------------------- */

/* Writes the numbers of whole blocks past the caches, if the result is much larger than
 * these. Decodes CHUNK numbers into a buffer in L1, and stores its whole cache lines by
 * instructions that do not load the lines that they replace. */
static void dequantize_past(const struct array_call *call, struct piece p)
{
    enum { CHUNK = 4096, CACHE_LINE = TF_LINE / sizeof(float) };
    _Alignas(64) float buffer[CHUNK + CACHE_LINE];
    const ptrdiff_t n = call->plan->layout.block;
    for (ptrdiff_t b = 0; b < p.whole; b += CHUNK / n) {
        const struct tf_block_codes in = codes_from(call, p.block + b);
        const ptrdiff_t left = p.whole - b, count = left < CHUNK / n ? left : CHUNK / n;
        float *out = call->out + p.item + b * n;
        /* Align the buffer with the cache lines of the result. */
        const size_t over = (uintptr_t)out % TF_LINE / sizeof *out;
        const size_t first = (CACHE_LINE - over) % CACHE_LINE;
        const size_t numbers = (size_t)(count * n);
        const size_t whole = (numbers - first) / CACHE_LINE * CACHE_LINE;
        const size_t last = first + whole;
        const float *from = buffer + over;
        call->loops->dequantize(call->plan, in.codes, in.scales, in.residuals,
                                (size_t)count, call->odd, buffer + over);
        memcpy(out, from, first * sizeof *out);
        tf_large_scatter(from + first, (char *)(out + first), sizeof *out, sizeof *out,
                         whole, call->size);
        memcpy(out + last, from + last, (numbers - last) * sizeof *out);
    }
    tf_large_end(sizeof(float), call->size);
}

static void dequantize_piece(const struct array_call *call, struct piece p)
{
    struct tf_block_codes in = codes_from(call, p.block);
    if (call->size >= TF_STREAMED / (ptrdiff_t)sizeof(float)) {
        dequantize_past(call, p);
    } else {
        call->loops->dequantize(call->plan, in.codes, in.scales, in.residuals,
                                (size_t)p.whole, call->odd, call->out + p.item);
    }
    if (p.rest) {
        float out[TF_BLOCK_MOST];
        in = codes_from(call, p.block + p.whole);
        call->loops->dequantize(call->plan, in.codes, in.scales, in.residuals, 1,
                                call->odd, out);
        memcpy(call->out + p.item + p.whole * call->plan->layout.block, out,
               (size_t)p.rest * sizeof *out);
    }
}

int tf_blocks_dequantize(const struct tf_block_plan *plan, struct tf_block_codes in,
                          struct tf_block_lines lines, int odd, float *out)
{
    struct array_call call = call_of(plan, lines);
    call.codes = in;
    call.out = out;
    call.odd = odd;
    return run(&call, dequantize_piece);
}

static void dequantize_double_piece(const struct array_call *call, struct piece p)
{
    const struct tf_block_format layout = call->plan->layout;
    const struct tf_scale s = tf_scales[layout.scale];
    const struct tf_element e = tf_elements[layout.element];
    const int n = layout.block, two = layout.residual >= 0;
    for (ptrdiff_t b = 0; b < p.whole + (p.rest != 0); b++) {
        const struct tf_block_codes in = codes_from(call, p.block + b);
        const float scale = tf_block_scale(s, layout.tensor_scale, in.scales[0]);
        const ptrdiff_t count = b < p.whole ? n : p.rest;
        struct tf_element lo = e;
        double second = 0;
        if (two) {
            lo = tf_elements[layout.residual];
            second = tf_second_scale(scale, tf_residual_scale(s, lo, in.scales[1]));
        }
        double *out = call->doubles + p.item + b * n;
        for (ptrdiff_t i = 0; i < count; i++) {
            const uint32_t at = (uint32_t)i;
            const float hi = tf_element_value(e, tf_code_at(e, in.codes, at));
            const float rest =
                two ? tf_element_value(lo, tf_code_at(lo, in.residuals, at)) : 0;
            out[i] = tf_block_number(two, scale, second, hi, rest, 0);
        }
    }
}

int tf_blocks_dequantize_double(const struct tf_block_plan *plan,
                                 struct tf_block_codes in, struct tf_block_lines lines,
                                 double *out)
{
    struct array_call call = call_of(plan, lines);
    call.codes = in;
    call.doubles = out;
    return run(&call, dequantize_double_piece);
}

/* -- bounds ------------------------------------------------------------------------ */

static void bounds_of_block(const float *x, ptrdiff_t n, ptrdiff_t at,
                            struct tf_block_bounds *bounds)
{
    const uint32_t infinite = TF_INF_BITS;
    uint32_t most = tf_greatest_magnitude(x, (int)n);
    if (most >= infinite) {
        most = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const uint32_t bits = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
            most = bits < infinite && bits > most ? bits : most;
            if (bits >= infinite && bounds->special < 0) {
                bounds->special = at + i;
            }
        }
    }
    const float greatest = tf_float_of(most);
    bounds->greatest = greatest > bounds->greatest ? greatest : bounds->greatest;
    if (most && greatest < bounds->least) {
        bounds->least = greatest;
    }
}

struct tf_block_bounds tf_blocks_bounds(const float *x, struct tf_block_lines lines,
                                        int block)
{
    struct tf_block_bounds bounds = {0, tf_float_of(TF_INF_BITS), -1};
    for (ptrdiff_t line = 0; line < lines.count; line++) {
        for (ptrdiff_t from = 0; from < lines.length; from += block) {
            const ptrdiff_t at = line * lines.length + from;
            const ptrdiff_t left = lines.length - from;
            bounds_of_block(x + at, left < block ? left : block, at, &bounds);
        }
    }
    return bounds;
}
