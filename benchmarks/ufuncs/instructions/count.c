/* A plugin of QEMU that prints the number of instructions executed so far whenever the
 * program makes the system call MARK, which no kernel has.
 *
 * Debian has no header of QEMU's plugins. These declarations are those of version 1 of
 * the interface (QEMU 4.2 and newer). */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "mark.h"

typedef uint64_t id_type;
struct block; /* of translated code, which runs from its first instruction to its last */

typedef void on_translation(id_type id, struct block *block);
typedef void on_system_call(id_type id, unsigned thread, int64_t number, uint64_t,
                            uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t);
enum operation { ADD_UINT64 };

void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, on_translation *call);
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *block, enum operation op,
                                              void *counter, uint64_t count);
void qemu_plugin_register_vcpu_syscall_cb(id_type id, on_system_call *call);
size_t qemu_plugin_tb_n_insns(const struct block *block);

int qemu_plugin_version = 1;

static uint64_t executed;

static void count_block(id_type id, struct block *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_UINT64, &executed,
                                             qemu_plugin_tb_n_insns(block));
}

static void print_count(id_type id, unsigned thread, int64_t number, uint64_t a, uint64_t b,
                        uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                        uint64_t h)
{
    (void)id, (void)thread, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g;
    (void)h;
    if (number == MARK) {
        fprintf(stderr, "%" PRIu64 "\n", executed);
    }
}

int qemu_plugin_install(id_type id, const void *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    qemu_plugin_register_vcpu_syscall_cb(id, print_count);
    return 0;
}
