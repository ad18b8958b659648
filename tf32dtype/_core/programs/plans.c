/* Finds a thread's place in a plan: once a place by its file and line, then by its key. */
#define _XOPEN_SOURCE 700 /* realpath, strdup */

#include "programs/plans.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "programs/frames.h"

enum { KEYS = 1 << 12, PROBES = 32 };

/* What a key was found to stand for. */
struct found {
    _Atomic uint64_t key;
    const struct tf_answer *answer;
};

/* What holds at a place; and of which plan that is true. */
struct tf_answer {
    const struct tf_plan *plan;
    const struct tf_blas_mode *mode;
};

struct tf_plan {
    struct tf_planned *places;
    struct tf_answer *answers; /* of each place; the last is of all others */
    size_t count;
    struct found found[KEYS];
};

static atomic_int has_regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of new keys */

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

static const struct tf_answer *answer_for(struct tf_plan *plan, struct tf_source *source)
{
    const uint64_t key = source->key | 1;
    size_t at = key >> 52;
    for (int probe = 0; probe < PROBES; probe++, at = (at + 1) % KEYS) {
        struct found *found = &plan->found[at];
        if (atomic_load_explicit(&found->key, memory_order_acquire) == key) {
            return found->answer;
        }
        if (!atomic_load(&found->key)) {
            tf_frames_finder.fill(source);
            pthread_mutex_lock(&lock);
            if (!atomic_load(&found->key)) {
                found->answer = look_up(plan, source);
                atomic_store_explicit(&found->key, key, memory_order_release);
            }
            pthread_mutex_unlock(&lock);
            if (atomic_load(&found->key) == key) {
                return found->answer;
            }
        }
    }
    tf_frames_finder.fill(source); /* too many places for the table */
    return look_up(plan, source);
}

/* A thread without frames, as OpenMP's, works for the last that had some and made the same
 * call from the same object; before there was one it has what holds at no place. */
static const struct tf_blas_mode *planned(struct tf_plan *plan, const void *_Atomic *last)
{
    struct tf_source source;
    if (tf_frames_finder.find(&source) == 0) {
        const struct tf_answer *answer = answer_for(plan, &source);
        if (last && atomic_load_explicit(last, memory_order_relaxed) != answer) {
            atomic_store(last, answer);
        }
        return answer->mode;
    }
    const struct tf_answer *before = last ? atomic_load(last) : NULL;
    return before && before->plan == plan ? before->mode : plan->answers[plan->count].mode;
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

void tf_plans_obey_regions(int on)
{
    atomic_store(&has_regions, on);
    tf_blas_set_places(mode_here);
}

/* In a forked child: another thread may have held it. */
static void renew_lock(void) { pthread_mutex_init(&lock, NULL); }
static void prepare(void) { pthread_atfork(NULL, NULL, renew_lock); }

const struct tf_plan *tf_plan_new(const struct tf_planned *places, size_t count,
                                  const struct tf_blas_mode *otherwise)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tf_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return NULL;
    }
    pthread_once(&once, prepare);
    plan->count = count;
    plan->places = calloc(count + 1, sizeof *plan->places);
    plan->answers = calloc(count + 1, sizeof *plan->answers);
    if (!plan->places || !plan->answers) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        plan->places[i] = places[i];
        plan->answers[i] = (struct tf_answer){plan, places[i].mode};
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
