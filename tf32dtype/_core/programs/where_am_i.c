/* Walks this thread's frames, and keeps facts about their code objects. */
#define Py_BUILD_CORE 1
#define PY_SSIZE_T_CLEAN
#include <Python.h> /* which asks for realpath too */

#include "programs/cpython/frames.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "programs/where_am_i.h"

int tf_frames_are_known(void) { return TF_FRAMES_ARE_KNOWN; }

/* A code object, as it was when it was first seen; never freed. The three numbers follow
 * from the lists below, and are written again when a list changes, while others read. */
struct code {
    char *file, *function; /* UTF-8; the function's qualified name */
    atomic_int is_users;   /* its file is not in a library */
    atomic_int is_own;     /* its file is in this package */
    atomic_int region;     /* of tf_frames_set_regions: 0 none, 1 only, 2 except */
};

/* -- lists of strings --------------------------------------------------------------- */

static char **_Atomic libraries, **_Atomic users, **_Atomic own;
static char *(*_Atomic only)[2], *(*_Atomic except)[2];

static size_t length_of(const char *const *list)
{
    size_t n = 0;
    while (list && list[n]) {
        n++;
    }
    return n;
}

static char **copied(const char *const *list)
{
    const size_t n = length_of(list);
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(list[i]);
    }
    return copy;
}

static char *(*copied_pairs(const char *const (*list)[2]))[2]
{
    size_t n = 0;
    while (list && list[n][0]) {
        n++;
    }
    char *(*copy)[2] = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i][0] = strdup(list[i][0]);
        copy[i][1] = strdup(list[i][1]);
    }
    return copy;
}

static int is_under(const char *file, char *const *folders)
{
    for (; folders && *folders; folders++) {
        const size_t n = strlen(*folders);
        if (strncmp(file, *folders, n) == 0 && (file[n] == '/' || file[n] == '\0')) {
            return 1;
        }
    }
    return 0;
}

/* Returns whether a file's name, such as "<string>", is that of code that a library
 * generated. Cells of IPython on a terminal have such names too, but are the user's. */
static int is_generated(const char *file)
{
    const char cell[] = "<ipython-input-";
    return file[0] == '<' && strncmp(file, cell, sizeof cell - 1) != 0;
}

int tf_frames_is_users(const char *file)
{
    return !is_generated(file) && (is_under(file, users) || !is_under(file, libraries));
}

/* Returns whether a qualified name is that of a function, or of a function inside it. */
static int is_function(const char *qualified, const char *function)
{
    for (const char *at = qualified; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
        const size_t n = strlen(function);
        if (strncmp(at, function, n) == 0 && (at[n] == '\0' || at[n] == '.')) {
            return 1;
        }
    }
    return 0;
}

static int is_in(const char *file, const char *function, char *(*regions)[2])
{
    for (; regions && (*regions)[0]; regions++) {
        if (strcmp(file, (*regions)[0]) == 0 &&
            (!(*regions)[1][0] || is_function(function, (*regions)[1]))) {
            return 1;
        }
    }
    return 0;
}

/* -- code objects ------------------------------------------------------------------- */

/* The facts of a code object. The members before `code` distinguish it from a later code
 * object at the same address. */
struct seen {
    struct tf_site site;
    const PyCodeObject *address;
    PyObject *file, *lines, *function;
    int first_line;
    struct code code;
};

static struct tf_site_table seen = {.count = 1 << 16, .size = sizeof(struct seen)};
static struct code unknown = {"<unknown>", "<unknown>", 0, 0, 0};

/* Returns a copy of a str in UTF-8, without calls of Python's functions. */
static char *text_of(PyObject *text)
{
    if (!PyUnicode_Check(text) || !PyUnicode_IS_COMPACT(text)) {
        return strdup("<unknown>");
    }
    const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    const int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    char *out = malloc(4 * (size_t)n + 1), *at = out;
    for (Py_ssize_t i = 0; out && i < n; i++) {
        const Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (c < 0x80) {
            *at++ = (char)c;
        } else {
            const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            const Py_UCS4 leads[] = {0, 0xC0, 0xE0, 0xF0};
            *at++ = (char)(leads[more] | c >> 6 * more);
            for (int j = more - 1; j >= 0; j--) {
                *at++ = (char)(0x80 | (c >> 6 * j & 0x3F));
            }
        }
    }
    if (out) {
        *at = '\0';
    }
    return out;
}

/* Finds the members that depend on the file, whose links are resolved as in all lists. */
static void classify(struct code *code)
{
    char *real = realpath(code->file, NULL);
    const char *file = real ? real : code->file;
    code->is_users = tf_frames_is_users(file);
    code->is_own = is_under(file, own);
    code->region = is_in(file, code->function, except) ? 2
                   : is_in(file, code->function, only) ? 1
                                                       : 0;
    free(real);
}

static void read_code(struct code *known, const PyCodeObject *code)
{
    known->file = text_of(code->co_filename);
    known->function = text_of(code->co_qualname);
    if (!known->file || !known->function) {
        *known = unknown;
    }
    classify(known);
}

static void fill_seen(struct tf_site *site, const void *context)
{
    struct seen *one = (struct seen *)site;
    const PyCodeObject *code = context;
    one->address = code;
    one->file = code->co_filename;
    one->lines = code->co_linetable;
    one->function = code->co_qualname;
    one->first_line = code->co_firstlineno;
    read_code(&one->code, code);
}

static const struct code *code_of(const PyCodeObject *code)
{
    const uint64_t words = (uintptr_t)code->co_linetable ^
                           (uint64_t)(uintptr_t)code->co_qualname << 16 ^
                           (uint64_t)(uintptr_t)code->co_filename << 32;
    const uint64_t key = ((uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15) ^
                          (words + (unsigned)code->co_firstlineno) *
                              UINT64_C(0xC2B2AE3D27D4EB4F)) | 1;
    const struct seen *one =
        (const struct seen *)tf_site_of(&seen, key, fill_seen, code);
    const int is_same = one && one->address == code && one->file == code->co_filename &&
                        one->lines == code->co_linetable &&
                        one->function == code->co_qualname &&
                        one->first_line == code->co_firstlineno;
    return is_same ? &one->code : &unknown; /* unknown if the table is full */
}

static void classify_again(struct tf_site *site) { classify(&((struct seen *)site)->code); }

/* -- frames ------------------------------------------------------------------------- */

static const Frame *first_frame(void)
{
    /* Works also after the GIL was released, but only in the main interpreter. */
    return first_frame_of(PyGILState_GetThisThreadState());
}

int tf_frames_has_any(const void *state)
{
    return TF_FRAMES_ARE_KNOWN ? first_frame_of(state) != NULL : state != NULL;
}

/* Details 0 and 1 of a source are the code objects of the user's frame and of the innermost
 * one; details 2 and 3 are their `struct code`. */
static int find(struct tf_source *source)
{
    int depth = 0;
    memset(source, 0, sizeof *source);
    for (const Frame *frame = first_frame(); frame && depth < 1000;
         frame = frame_before(frame), depth++) {
        PyCodeObject *code = code_in(frame);
        if (!code) {
            continue;
        }
        const struct code *known = code_of(code);
        if (!source->details[1] && !known->is_own) {
            source->details[1] = code;
            source->details[3] = known;
            source->offsets[1] = offset_in(frame, code);
        }
        if (known->is_users) {
            source->details[0] = code;
            source->details[2] = known;
            source->offsets[0] = offset_in(frame, code);
            break;
        }
    }
    if (!source->details[1]) {
        return -1;
    }
    source->key = ((uintptr_t)source->details[3] * 31 + (unsigned)source->offsets[1]) *
                      UINT64_C(0x9E3779B97F4A7C15) ^
                  ((uintptr_t)source->details[2] * 17 + (unsigned)source->offsets[0]) *
                      UINT64_C(0xC2B2AE3D27D4EB4F);
    return 0;
}

static void fill(struct tf_source *source)
{
    for (int i = 0; i < 2; i++) {
        const struct code *known = source->details[2 + i];
        if (known) {
            source->file[i] = known->file;
            source->function[i] = known->function;
            source->line[i] = PyCode_Addr2Line((PyCodeObject *)source->details[i],
                                               source->offsets[i]);
        }
    }
}

/* Returns the region of a code object. Reads it again if the table of code objects is full,
 * which is slow. */
static int region_of(const PyCodeObject *code)
{
    const struct code *known = code_of(code);
    if (known != &unknown) {
        return known->region;
    }
    struct code read = {0};
    read_code(&read, code);
    const int region = read.region;
    if (read.file != unknown.file) {
        free(read.file);
        free(read.function);
    }
    return region;
}

int tf_frames_may_obey(void)
{
    char *(*const wanted)[2] = TF_FRAMES_ARE_KNOWN ? only : NULL;
    int inside = !wanted || !(*wanted)[0];
    for (const Frame *frame = first_frame(); frame; frame = frame_before(frame)) {
        PyCodeObject *code = code_in(frame);
        const int region = code ? region_of(code) : 0;
        if (region == 2) {
            return 0;
        }
        inside |= region == 1;
    }
    return inside;
}

/* -- variables ---------------------------------------------------------------------- */

#ifdef Py_GIL_DISABLED

PyObject *tf_frames_variables(void) { return PyList_New(0); }

#else

enum { MOST_FRAMES = 64 };

static int add_variable(PyObject *list, PyObject *name, PyObject *value)
{
    PyObject *pair = PyTuple_Pack(2, name, value);
    const int status = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return status;
}

static int add_dict(PyObject *list, PyObject *variables)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (variables && PyDict_CheckExact(variables) &&
           PyDict_Next(variables, &at, &name, &value)) {
        if (add_variable(list, name, value) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_locals(PyObject *list, const Frame *frame, const PyCodeObject *code)
{
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *value = local_in(frame, i);
        if (value && PyCell_Check(value)) {
            value = ((PyCellObject *)value)->ob_ref;
        }
        if (value &&
            add_variable(list, PyTuple_GET_ITEM(code->co_localsplusnames, i), value) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *tf_frames_variables(void)
{
    PyObject *list = PyList_New(0);
    const Frame *found[MOST_FRAMES], *frame = first_frame();
    int count = 0;
    for (; list && frame && count < MOST_FRAMES; frame = frame_before(frame)) {
        PyCodeObject *code = code_in(frame);
        if (code && code_of(code)->is_users) {
            found[count++] = frame;
        }
    }
    const PyObject *before = NULL;
    int status = 0;
    while (list && count-- && status == 0) {
        frame = found[count];
        if (frame->f_globals != before) {
            status = add_dict(list, frame->f_globals);
            before = frame->f_globals;
        }
        if (status == 0 && frame->f_locals != frame->f_globals) {
            status = add_dict(list, frame->f_locals);
        }
        if (status == 0) {
            status = add_locals(list, frame, code_in(frame));
        }
    }
    if (status < 0) {
        Py_CLEAR(list);
    }
    return list;
}

#endif

const struct tf_source_finder tf_frames_finder = {find, fill};

int tf_frames_set_folders(const char *const *of_libraries, const char *const *of_users,
                          const char *const *of_own)
{
    libraries = copied(of_libraries); /* threads may still read the old, small lists */
    users = copied(of_users);
    own = copied(of_own);
    if (!libraries || !users || !own) {
        return -1;
    }
    tf_sites_update(&seen, classify_again);
    return 0;
}

int tf_frames_set_regions(const char *const (*of_only)[2], const char *const (*of_except)[2])
{
    only = copied_pairs(of_only);
    except = copied_pairs(of_except);
    if (!only || !except) {
        return -1;
    }
    tf_sites_update(&seen, classify_again);
    return 0;
}
