/* The reserve is one mapping, which is allocated from its start on, as a stack. */
#include "runtime/reserve.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/asserts.h"
#include "runtime/platform.h"
#include "runtime/sizes.h"
#include "runtime/stops.h"

/* A workspace takes about 10 MB of the reserve. Untouched pages take no memory. */
enum { RESERVE = 48 << 20, ALIGNMENT = 4096, NAP = 100000 /* ns */ };

static char *reserve;
static size_t used;
static int users;
static atomic_flag taken = ATOMIC_FLAG_INIT; /* while a thread is inside */
static _Thread_local int is_inside;

static void lock(void)
{
    while (atomic_flag_test_and_set(&taken)) {
        tf_nap(NAP);
    }
}

static void unlock(void) { atomic_flag_clear(&taken); }

/* Frees the reserve in a forked child, where threads that were inside do not exist. */
static void forget_others(void)
{
    if (!is_inside) {
        used = 0;
        unlock();
    }
}

int tf_reserve_begin(void)
{
    static int prepared;
    if (!prepared) {
        tf_at_fork(forget_others);
        prepared = 1;
    }
    if (users == 0) {
        lock();
        reserve = tf_pages_take(RESERVE);
        unlock();
    }
    users += reserve != NULL;
    return reserve ? 0 : -1;
}

void tf_reserve_end(void)
{
    if (--users == 0) {
        lock();
        tf_pages_give(reserve, RESERVE);
        reserve = NULL;
        unlock();
    }
}

int tf_reserve_enter(void)
{
    struct tf_watch watch = {0};
    while (atomic_flag_test_and_set(&taken)) {
        if (tf_is_stopped(&watch, 1)) {
            return -1;
        }
        tf_nap(NAP);
    }
    if (!reserve) {
        unlock();
        return -1;
    }
    used = 0;
    is_inside = 1;
    return 0;
}

void tf_reserve_leave(void)
{
    is_inside = 0;
    unlock();
}

int tf_in_reserve(void) { return is_inside; }

void *tf_room(size_t bytes)
{
    if (!is_inside) {
        return malloc(bytes ? bytes : 1);
    }
    if (bytes > RESERVE - used) {
        return NULL;
    }
    char *room = reserve + used;
    used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return room;
}

void tf_room_free(void *room)
{
    if (!is_inside) {
        free(room);
    } else if (room) {
        const size_t place = (size_t)((char *)room - reserve);
        TF_ASSERT(place < RESERVE);
        used = place < used ? place : used;
    }
}
