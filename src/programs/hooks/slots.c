/* Walks the relocations of ELF objects. The manual page dl_iterate_phdr(3) describes how
 * objects are found, elf(5) describes their tables. */
#define _GNU_SOURCE /* dl_iterate_phdr, dladdr */

#include "programs/hooks/slots.h"

#if defined(__linux__)

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/hooks/stubs.h"

#if defined(__aarch64__)
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_DATA = R_AARCH64_GLOB_DAT,
       POINTER = R_AARCH64_ABS64 };
#else
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_DATA = R_X86_64_GLOB_DAT,
       POINTER = R_X86_64_64 };
#endif

struct range {
    uintptr_t begin, end;
};

static int holds(struct range range, const void *address)
{
    return (uintptr_t)address >= range.begin && (uintptr_t)address < range.end;
}

/* An object, as dl_iterate_phdr describes it. */
struct object {
    uintptr_t base;
    const char *name;
    uint64_t name_hash; /* the name itself is freed with the object */
    void **redirected;  /* a slot that was redirected, or NULL */
    const ElfW(Dyn) *dynamic;
    struct range loaded, read_only; /* read_only after relocation (RELRO) */
};

struct objects {
    struct object *all;
    size_t count, room;
    unsigned long long added, removed;
    int failed;
};

static struct objects known;

/* Returns the FNV-1a hash of a string. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
    struct objects *objects = context;
    (void)size;
    objects->added = info->dlpi_adds;
    objects->removed = info->dlpi_subs;
    if (objects->count == objects->room) {
        const size_t room = objects->room ? 2 * objects->room : 64;
        struct object *all = realloc(objects->all, room * sizeof *all);
        if (!all) {
            objects->failed = 1;
            return 1;
        }
        objects->all = all;
        objects->room = room;
    }
    struct object object = {.base = info->dlpi_addr,
                            .name = info->dlpi_name ? info->dlpi_name : "",
                            .loaded = {UINTPTR_MAX, 0}};
    object.name_hash = hash_of(object.name);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const struct range range = {object.base + part->p_vaddr,
                                    object.base + part->p_vaddr + part->p_memsz};
        if (part->p_type == PT_DYNAMIC) {
            object.dynamic = (const ElfW(Dyn) *)range.begin;
        } else if (part->p_type == PT_GNU_RELRO) {
            object.read_only = range;
        } else if (part->p_type == PT_LOAD) {
            object.loaded.begin =
                range.begin < object.loaded.begin ? range.begin : object.loaded.begin;
            object.loaded.end = range.end > object.loaded.end ? range.end
                                                              : object.loaded.end;
        }
    }
    objects->all[objects->count++] = object;
    return 0;
}

static int read_counts(struct dl_phdr_info *info, size_t size, void *context)
{
    struct objects *objects = context;
    (void)size;
    objects->added = info->dlpi_adds;
    objects->removed = info->dlpi_subs;
    return 1;
}

int tf_objects_changed(void)
{
    struct objects now = {0};
    dl_iterate_phdr(read_counts, &now);
    return now.added != known.added || now.removed != known.removed;
}

/* Returns whether an object was redirected before, and copies its `redirected`. If
 * any object was unloaded since, this one may have been loaded again at the same
 * address, with slots that the linker has filled again: then its redirected slot must
 * still hold a stub. */
static int is_done(struct object *object, int any_has_gone)
{
    for (size_t i = 0; i < known.count; i++) {
        const struct object *before = &known.all[i];
        if (before->base == object->base && before->dynamic == object->dynamic &&
            before->name_hash == object->name_hash) {
            object->redirected = before->redirected;
            return !any_has_gone || !object->redirected ||
                   (holds(object->loaded, object->redirected) &&
                    tf_is_stub(*object->redirected));
        }
    }
    return 0;
}

/* Returns whether an object keeps its slots: this library, the dynamic linker, and objects
 * that are not files, such as the kernel's (names without a slash). The executable, whose
 * name is empty, does not keep them. */
static int is_left_alone(const struct object *object)
{
    return !object->dynamic || holds(object->loaded, &known) ||
           (*object->name && !strchr(object->name, '/')) ||
           strstr(object->name, "/ld-linux") || strstr(object->name, "/ld-musl");
}

/* The tables of an object that name what it imports. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *strings;
    struct {
        const ElfW(Rela) *all;
        size_t count;
    } relocations[2];
};

static struct tables tables_of(const struct object *object)
{
    struct tables tables = {0};
    for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = entry->d_un.d_ptr;
        address += address < object->base ? object->base : 0; /* in musl, an offset */
        switch (entry->d_tag) {
        case DT_SYMTAB: tables.symbols = (const ElfW(Sym) *)address; break;
        case DT_STRTAB: tables.strings = (const char *)address; break;
        case DT_JMPREL: tables.relocations[0].all = (const ElfW(Rela) *)address; break;
        case DT_RELA: tables.relocations[1].all = (const ElfW(Rela) *)address; break;
        case DT_PLTRELSZ:
            tables.relocations[0].count = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELASZ:
            tables.relocations[1].count = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default: break;
        }
    }
    return tables;
}

/* Returns the function that a slot leads to. A slot that the linker binds at the first call
 * points into its own object until then: its symbol is looked up as the linker would. */
static void *original_of(const struct object *object, void *handle, const char *symbol,
                         void *const *slot)
{
    void *found = NULL;
    if (!holds(object->loaded, *slot)) {
        return *slot;
    }
    found = dlsym(RTLD_DEFAULT, symbol);
    return found ? found : dlsym(handle, symbol);
}

static int store(const struct object *object, void **slot, void *value)
{
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)slot & ~(size - 1));
    /* The linker makes only whole pages read-only. */
    const struct range protected = {object->read_only.begin & ~(size - 1),
                                    object->read_only.end & ~(size - 1)};
    const int is_protected = holds(protected, slot);
    if (is_protected && mprotect(page, size, PROT_READ | PROT_WRITE)) {
        return 0;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (is_protected) {
        mprotect(page, size, PROT_READ);
    }
    return 1;
}

static int redirect_object(struct object *object, tf_wanted_fn *wanted,
                           tf_redirect_fn *redirect)
{
    int failed = 0;
    const struct tables tables = tables_of(object);
    struct tf_slot found = {.object = object->name};
    if (!tables.symbols || !tables.strings) {
        return 0;
    }
    for (int list = 0; list < 2; list++) {
        for (size_t i = 0; i < tables.relocations[list].count && !failed; i++) {
            const ElfW(Rela) *relocation = &tables.relocations[list].all[i];
            const int type = (int)ELF64_R_TYPE(relocation->r_info);
            const size_t number = ELF64_R_SYM(relocation->r_info);
            const char *symbol = tables.strings + tables.symbols[number].st_name;
            void **slot = (void **)(object->base + relocation->r_offset);
            if ((type != SLOT_OF_CALL && type != SLOT_OF_DATA && type != POINTER) ||
                number == 0 || relocation->r_addend != 0 || !wanted(symbol)) {
                continue;
            }
            if (tf_is_stub(*slot)) {
                object->redirected = slot;
                continue;
            }
            if (!found.handle) {
                const char *name = *object->name ? object->name : NULL;
                found.handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
                if (!found.handle) {
                    return 0; /* the object has been unloaded meanwhile */
                }
            }
            found.symbol = symbol;
            found.own = tables.symbols[number].st_shndx != SHN_UNDEF;
            found.original = original_of(object, found.handle, symbol, slot);
            void *value = NULL;
            failed = found.original && redirect(&found, &value) < 0;
            if (value && store(object, slot, value)) {
                object->redirected = slot;
            }
        }
    }
    if (found.handle) {
        dlclose(found.handle);
    }
    return failed ? -1 : 0;
}

int tf_redirect_slots(tf_wanted_fn *wanted, tf_redirect_fn *redirect)
{
    /* List the objects before the work: dl_iterate_phdr holds a lock that dlopen needs. */
    struct objects now = {0};
    dl_iterate_phdr(collect, &now);
    const int any_has_gone = now.removed != known.removed;
    for (size_t i = 0; i < now.count && !now.failed; i++) {
        if (!is_done(&now.all[i], any_has_gone) && !is_left_alone(&now.all[i])) {
            now.failed = redirect_object(&now.all[i], wanted, redirect) < 0;
        }
    }
    if (now.failed) {
        free(now.all);
        return -1;
    }
    free(known.all);
    known = now;
    return 0;
}

int tf_are_of_one_object(const void *a, const void *b)
{
    Dl_info of_a, of_b;
    return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

int tf_defines(const struct tf_slot *slot, const char *symbol)
{
    Dl_info found;
    void *address = dlsym(slot->handle, symbol);
    struct link_map *map = NULL;
    if (!address || !dladdr(address, &found) ||
        dlinfo(slot->handle, RTLD_DI_LINKMAP, &map)) {
        return 0;
    }
    /* dlsym also searches the libraries that the object depends on. */
    Dl_info own;
    return dladdr(map->l_ld, &own) && own.dli_fbase == found.dli_fbase;
}

#else

int tf_redirect_slots(tf_wanted_fn *wanted, tf_redirect_fn *redirect)
{
    (void)wanted;
    (void)redirect;
    return 0;
}

int tf_objects_changed(void) { return 0; }

int tf_are_of_one_object(const void *a, const void *b)
{
    (void)a;
    (void)b;
    return 0;
}

int tf_defines(const struct tf_slot *slot, const char *symbol)
{
    (void)slot;
    (void)symbol;
    return 0;
}

#endif
