/* Memory for results that have to be computed though the system gives no more. */
#ifndef TF32DTYPE_RUNTIME_RESERVE_H
#define TF32DTYPE_RUNTIME_RESERVE_H

#include <stddef.h>

/* Allocates the reserve, as often as it was begun and not yet ended: by one thread at a time.
 * Waits for who is inside only where there is no other user. Returns -1 if memory is
 * short. */
int tf_reserve_begin(void);
void tf_reserve_end(void);

/* From here to tf_reserve_leave, all room and workspaces that this thread takes are parts
 * of the reserve, and this thread computes without help. One thread at a time may be
 * inside; others wait. Returns -1 if there is no reserve, or if it was stopped (stops.h). */
int tf_reserve_enter(void);
void tf_reserve_leave(void);
int tf_in_reserve(void);

/* As malloc and free. Inside the reserve, NULL depends only on what is in use there, and
 * room that is freed takes with it all room that was taken after it. */
void *tf_room(size_t bytes);
void tf_room_free(void *room);

#endif
