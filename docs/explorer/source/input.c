#include "input.h"

#include "json.h"
#include "read_number.h"

char input_text[INPUT_TEXT_ROOM];
uint64_t input_list[INPUT_LISTS][INPUT_LIST_ROOM];

EXPORTED(input) char *page_input(void);
EXPORTED(input_room) int32_t page_input_room(void);
EXPORTED(list) uint64_t *page_list(int which);
EXPORTED(list_room) int32_t page_list_room(void);

char *page_input(void) { return input_text; }

int32_t page_input_room(void) { return INPUT_TEXT_ROOM; }

uint64_t *page_list(int which) { return input_list[which]; }

int32_t page_list_room(void) { return INPUT_LIST_ROOM; }

const char *input_value(const char **at, int32_t *n, struct exact *x)
{
    int32_t line = 0;
    while (line < *n && (*at)[line] != '\n') {
        line++;
    }
    const struct typed typed = read_number(*at, line, x);
    const int32_t behind = line < *n ? line + 1 : line;
    *at += behind;
    *n -= behind;
    return typed.error    ? typed.error
           : typed.is_code ? "it is a code: a value has a point or an exponent, 0x7Ep+0"
                           : 0;
}
