/* Finds a thread's call site in a plan: once by its file and line, then by its key. */
#define _XOPEN_SOURCE 700 /* realpath, strdup */

#include "programs/plans.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "programs/where_am_i.h"

/* The line of a plan that belongs to a call site. */
struct found {
    struct tf_site site;
    struct line *line;
};

/* The settings at a call site, and the plan that gave them. */
struct tf_answer {
    const struct tf_plan *plan;
    const void *what;
};

/* The entries of a plan (`places`) for one line, and the operands that were seen there. */
struct line {
    const struct tf_planned *place;  /* the first entry; NULL for all other lines */
    const struct tf_answer *answer;  /* for operands that the plan does not name */
    size_t *operands;                /* entries that name an operand */
    size_t count;
    atomic_int is_known; /* an operand was found by its digest */
    uint64_t most[2];    /* the largest number of an operand on each side */
    _Atomic uint64_t *seen[2]; /* digests in the order of first use; 0: none yet */
};

struct tf_plan {
    struct tf_planned *places;
    struct tf_answer *answers; /* for each entry, and last for all other call sites */
    size_t count;
    struct line *lines; /* at most `count`, and last the line for all others */
    size_t line_count;
    struct tf_site_table found;
};

static atomic_int has_regions;

static int is_line(const char *real, int line, const struct tf_planned *place, int which)
{
    return place->file[which] && line == place->line[which] &&
           strcmp(real, place->file[which]) == 0;
}

/* Returns the line of a plan for a source. A line that names both files of the source takes
 * precedence over a line that names one. */
static struct line *look_up(const struct tf_plan *plan, const struct tf_source *source)
{
    struct line *one = &plan->lines[plan->line_count];
    char *real[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        if (source->file[i]) {
            real[i] = realpath(source->file[i], NULL);
            if (!real[i]) {
                real[i] = strdup(source->file[i]);
            }
        }
    }
    for (size_t i = 0; i < plan->line_count; i++) {
        const struct tf_planned *place = plan->lines[i].place;
        int fits[2];
        for (int j = 0; j < 2; j++) {
            fits[j] = !place->file[j] ||
                      (real[j] && is_line(real[j], source->line[j], place, j));
        }
        if (fits[0] && fits[1]) {
            one = &plan->lines[i];
            if (place->file[0] && place->file[1]) {
                break;
            }
        }
    }
    free(real[0]);
    free(real[1]);
    return one;
}

struct asked {
    const struct tf_plan *plan;
    struct tf_source *source;
};

static struct line *ask(const struct asked *asked)
{
    tf_frames_finder.fill(asked->source);
    return look_up(asked->plan, asked->source);
}

static void fill(struct tf_site *site, const void *asked)
{
    ((struct found *)site)->line = ask(asked);
}

static struct line *line_of(struct tf_plan *plan, struct tf_source *source)
{
    const struct asked asked = {plan, source};
    const struct tf_site *site =
        tf_site_of(&plan->found, tf_site_key(source->key, 0), fill, &asked);
    return site ? ((const struct found *)site)->line : ask(&asked);
}

/* -- operands ----------------------------------------------------------------------- */

/* Returns the number of an operand in the order of first use, from 1 on; 0 if the number is
 * larger than all numbers that the plan names. */
static uint64_t number_of(struct line *line, int side, uint64_t digest)
{
    for (uint64_t i = 0; i < line->most[side]; i++) {
        uint64_t here = atomic_load_explicit(&line->seen[side][i], memory_order_relaxed);
        if (here == digest || (!here && (atomic_compare_exchange_strong(
                                             &line->seen[side][i], &here, digest) ||
                                         here == digest))) {
            return i + 1;
        }
    }
    return 0;
}

static const struct tf_planned *with_digest(const struct tf_plan *plan,
                                            const struct line *line, const uint64_t *digests)
{
    for (size_t i = 0; i < line->count; i++) {
        const struct tf_planned *place = &plan->places[line->operands[i]];
        if (place->digest && (place->digest == digests[0] || place->digest == digests[1])) {
            return place;
        }
    }
    return NULL;
}

static const struct tf_planned *with_number(const struct tf_plan *plan, struct line *line,
                                            const struct tf_operands *operands)
{
    const struct tf_planned *found = NULL;
    for (int side = 0; side < 2; side++) {
        const uint64_t digest = operands->digests[side];
        const uint64_t number = digest ? number_of(line, side, digest) : 0;
        for (size_t i = 0; number && i < line->count; i++) {
            const struct tf_planned *place = &plan->places[line->operands[i]];
            const struct tf_blas_matrix *x = operands->matrices[side];
            if (place->side == side && place->number == number &&
                ((place->rows == x->rows && place->columns == x->columns) ||
                 (place->rows == x->columns && place->columns == x->rows))) {
                found = place;
            }
        }
    }
    return found;
}

static const struct tf_answer *answer_for(const struct tf_plan *plan, struct line *line,
                                          const struct tf_operands_seen *seen)
{
    if (!line->count) {
        return line->answer;
    }
    if (!seen) {
        for (size_t i = 0; i < line->count; i++) {
            const struct tf_answer *answer = &plan->answers[line->operands[i]];
            if (answer->what) {
                return answer;
            }
        }
        return line->answer;
    }
    struct tf_blas_product product;
    const struct tf_operands operands = tf_operands_seen(seen, &product);
    const struct tf_planned *place = with_digest(plan, line, operands.digests);
    if (place) {
        atomic_store_explicit(&line->is_known, 1, memory_order_relaxed);
    } else if (!atomic_load_explicit(&line->is_known, memory_order_relaxed)) {
        place = with_number(plan, line, &operands);
    }
    return place ? &plan->answers[place - plan->places] : line->answer;
}

/* Returns the settings at this thread's call site. A thread without frames, such as one of
 * OpenMP's, gets those of the last thread with frames that made the same call from the same
 * object; before such a call, those of all other call sites. */
static const void *planned(struct tf_plan *plan, const void *_Atomic *last,
                           const struct tf_operands_seen *seen)
{
    struct tf_source source;
    if (tf_frames_finder.find(&source) == 0) {
        const struct tf_answer *answer = answer_for(plan, line_of(plan, &source), seen);
        if (last && atomic_load_explicit(last, memory_order_relaxed) != answer) {
            atomic_store(last, answer);
        }
        return answer->what;
    }
    const struct tf_answer *before = last ? atomic_load(last) : NULL;
    return before && before->plan == plan ? before->what : plan->answers[plan->count].what;
}

/* Returns the mode at this thread's call site, as a tf_blas_place_fn. */
static const struct tf_blas_mode *mode_here(const struct tf_blas_mode *mode,
                                            const void *_Atomic *last,
                                            const struct tf_operands_seen *seen)
{
    if (atomic_load_explicit(&has_regions, memory_order_relaxed) &&
        tf_blas_is_outer(mode) && !tf_frames_may_obey()) {
        return NULL;
    }
    return mode->plan ? planned((struct tf_plan *)mode->plan, last, seen) : mode;
}

const void *tf_plan_here(const void *plan)
{
    return planned((struct tf_plan *)plan, NULL, NULL);
}

void tf_plans_obey_regions(int on)
{
    atomic_store(&has_regions, on);
    tf_blas_set_places(mode_here);
}

static int is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Returns the line of an entry, and makes it if necessary. `lines` has room. */
static struct line *line_with(struct tf_plan *plan, const struct tf_planned *place)
{
    size_t i = 0;
    for (; i < plan->line_count; i++) {
        const struct tf_planned *other = plan->lines[i].place;
        if (is_same(place->file[0], other->file[0]) &&
            is_same(place->file[1], other->file[1]) && place->line[0] == other->line[0] &&
            place->line[1] == other->line[1]) {
            return &plan->lines[i];
        }
    }
    plan->line_count++;
    plan->lines[i].place = place;
    plan->lines[i].answer = &plan->answers[plan->count];
    return &plan->lines[i];
}

/* Adds an entry to its line. Returns -1 if memory is short. */
static int add_to_lines(struct tf_plan *plan, size_t number)
{
    const struct tf_planned *place = &plan->places[number];
    struct line *line = line_with(plan, place);
    const int is_both = place->file[0] && place->file[1];
    if (!place->number) {
        if (!is_both || line->answer == &plan->answers[plan->count]) {
            line->answer = &plan->answers[number];
        }
        return 0;
    }
    if (!line->operands &&
        !(line->operands = calloc(plan->count, sizeof *line->operands))) {
        return -1;
    }
    line->operands[line->count++] = number;
    if (place->number > line->most[place->side]) {
        line->most[place->side] = place->number;
    }
    return 0;
}

static int make_lines(struct tf_plan *plan)
{
    plan->lines = calloc(plan->count + 1, sizeof *plan->lines);
    for (size_t i = 0; plan->lines && i < plan->count; i++) {
        if (add_to_lines(plan, i) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; plan->lines && i < plan->line_count; i++) {
        for (int side = 0; side < 2; side++) {
            struct line *line = &plan->lines[i];
            line->seen[side] = calloc(line->most[side] + 1, sizeof *line->seen[side]);
            if (!line->seen[side]) {
                return -1;
            }
        }
    }
    if (plan->lines) {
        plan->lines[plan->line_count].answer = &plan->answers[plan->count];
    }
    return plan->lines ? 0 : -1;
}

const struct tf_plan *tf_plan_new(const struct tf_planned *places, size_t count,
                                  const void *otherwise)
{
    struct tf_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return NULL;
    }
    plan->found = (struct tf_site_table){.count = 1 << 12, .size = sizeof(struct found)};
    plan->count = count;
    plan->places = calloc(count + 1, sizeof *plan->places);
    plan->answers = calloc(count + 1, sizeof *plan->answers);
    if (!plan->places || !plan->answers) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        plan->places[i] = places[i];
        plan->answers[i] = (struct tf_answer){plan, places[i].what};
        for (int j = 0; j < 2; j++) {
            if (places[i].file[j] && !(plan->places[i].file[j] = strdup(places[i].file[j]))) {
                return NULL;
            }
        }
    }
    plan->answers[count] = (struct tf_answer){plan, otherwise};
    if (make_lines(plan) < 0) {
        return NULL;
    }
    tf_blas_set_places(mode_here);
    return plan;
}
