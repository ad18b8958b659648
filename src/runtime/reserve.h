/* Memory for results that must be computed although the system has no more memory. */
#ifndef TF32DTYPE_RUNTIME_RESERVE_H
#define TF32DTYPE_RUNTIME_RESERVE_H

#include <stddef.h>

/* tf_reserve_begin allocates the reserve for its first user, and tf_reserve_end frees it
 * after the last one, each by one thread at a time. Only then do they wait for a thread
 * inside. Begin returns -1 if memory is short. */
int tf_reserve_begin(void);
void tf_reserve_end(void);

/* From tf_reserve_enter to tf_reserve_leave, this thread gets all room and workspaces from
 * the reserve, and computes without help. One thread at a time is inside, and others wait.
 * Enter returns -1 without a reserve, or if the call was stopped (stops.h). */
int tf_reserve_enter(void);
void tf_reserve_leave(void);
int tf_in_reserve(void);

/* Allocate and free as malloc and free do. Inside the reserve, NULL depends only on the
 * room in use, and to free room also frees all room that was taken after it. */
void *tf_room(size_t bytes);
void tf_room_free(void *room);

#endif
