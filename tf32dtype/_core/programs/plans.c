/* Finds a thread's call site in a plan: once by its file and line, then by its key. */
#define _XOPEN_SOURCE 700 /* realpath, strdup */

#include "programs/plans.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "programs/where_am_i.h"

/* What a call site was found to stand for. */
struct found {
    struct tf_site site;
    const struct tf_answer *answer;
};

/* What holds at a place; and of which plan that is true. */
struct tf_answer {
    const struct tf_plan *plan;
    const void *what;
};

struct tf_plan {
    struct tf_planned *places;
    struct tf_answer *answers; /* of each place; the last is of all others */
    size_t count;
    struct tf_site_table found;
};

static atomic_int has_regions;

static int is_line(const char *real, int line, const struct tf_planned *place, int which)
{
    return place->file[which] && line == place->line[which] &&
           strcmp(real, place->file[which]) == 0;
}

/* The answer for a place: what names both lines goes before what names one. */
static const struct tf_answer *look_up(const struct tf_plan *plan,
                                       const struct tf_source *source)
{
    const struct tf_answer *one = &plan->answers[plan->count];
    char *real[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        if (source->file[i]) {
            real[i] = realpath(source->file[i], NULL);
            if (!real[i]) {
                real[i] = strdup(source->file[i]);
            }
        }
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct tf_planned *place = &plan->places[i];
        int fits[2];
        for (int j = 0; j < 2; j++) {
            fits[j] = !place->file[j] ||
                      (real[j] && is_line(real[j], source->line[j], place, j));
        }
        if (fits[0] && fits[1]) {
            one = &plan->answers[i];
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

static const struct tf_answer *ask(const struct asked *asked)
{
    tf_frames_finder.fill(asked->source);
    return look_up(asked->plan, asked->source);
}

static void fill(struct tf_site *site, const void *asked)
{
    ((struct found *)site)->answer = ask(asked);
}

static const struct tf_answer *answer_for(struct tf_plan *plan, struct tf_source *source)
{
    const struct asked asked = {plan, source};
    const struct tf_site *site =
        tf_site_of(&plan->found, tf_site_key(source->key, 0), fill, &asked);
    return site ? ((const struct found *)site)->answer : ask(&asked);
}

/* A thread without frames, as OpenMP's, works for the last that had some and made the same
 * call from the same object; before there was one it has what holds at no place. */
static const void *planned(struct tf_plan *plan, const void *_Atomic *last)
{
    struct tf_source source;
    if (tf_frames_finder.find(&source) == 0) {
        const struct tf_answer *answer = answer_for(plan, &source);
        if (last && atomic_load_explicit(last, memory_order_relaxed) != answer) {
            atomic_store(last, answer);
        }
        return answer->what;
    }
    const struct tf_answer *before = last ? atomic_load(last) : NULL;
    return before && before->plan == plan ? before->what : plan->answers[plan->count].what;
}

/* As a tf_blas_place_fn. */
static const struct tf_blas_mode *mode_here(const struct tf_blas_mode *mode,
                                            const void *_Atomic *last)
{
    if (atomic_load_explicit(&has_regions, memory_order_relaxed) &&
        tf_blas_is_outer(mode) && !tf_frames_may_obey()) {
        return NULL;
    }
    return mode->plan ? planned((struct tf_plan *)mode->plan, last) : mode;
}

const void *tf_plan_here(const void *plan)
{
    return planned((struct tf_plan *)plan, NULL);
}

void tf_plans_obey_regions(int on)
{
    atomic_store(&has_regions, on);
    tf_blas_set_places(mode_here);
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
    tf_blas_set_places(mode_here);
    return plan;
}
