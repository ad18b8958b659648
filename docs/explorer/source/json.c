#include "json.h"

enum { ROOM = 16 << 20 };

static char written[ROOM];
static int32_t length;
static int comma; /* whether the next value needs a comma before it */

EXPORTED(output) char *page_output(void);

char *page_output(void) { return written; }

/* Appends a character. A full buffer ends the module: page_* functions limit their
 * answers. */
static void put(char character)
{
    if (length == ROOM) {
        __builtin_trap();
    }
    written[length++] = character;
}

static void before(void)
{
    if (comma) {
        put(',');
    }
    comma = 0;
}

void json_begin(void) { length = comma = 0; }

int32_t json_end(void) { return length; }

void json_open(char bracket)
{
    before();
    put(bracket);
}

void json_close(char bracket)
{
    put(bracket);
    comma = 1;
}

void json_key(const char *name)
{
    json_text(name);
    put(':');
    comma = 0;
}

void json_begin_text(void)
{
    before();
    put('"');
}

void json_put_character(char character)
{
    if (character == '"' || character == '\\') {
        put('\\');
    }
    put((unsigned char)character < ' ' ? ' ' : character);
}

void json_put(const char *piece)
{
    for (; *piece; piece++) {
        json_put_character(*piece);
    }
}

void json_put_natural(uint64_t x)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + x % 10);
        x /= 10;
    } while (x);
    while (count > 0) {
        put(digits[--count]);
    }
}

void json_put_integer(int64_t x)
{
    if (x < 0) {
        put('-');
    }
    json_put_natural(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

void json_put_hex(uint64_t x, int digits)
{
    while (digits < 16 && x >> 4 * digits) {
        digits++;
    }
    while (digits-- > 0) {
        put("0123456789ABCDEF"[x >> 4 * digits & 15]);
    }
}

void json_end_text(void)
{
    put('"');
    comma = 1;
}

void json_begin_number(void) { before(); }

void json_end_number(void) { comma = 1; }

void json_text(const char *text)
{
    json_begin_text();
    json_put(text);
    json_end_text();
}

void json_integer(int64_t x)
{
    before();
    json_put_integer(x);
    comma = 1;
}

static void word(const char *text)
{
    before();
    for (; *text; text++) {
        put(*text);
    }
    comma = 1;
}

void json_boolean(int x) { word(x ? "true" : "false"); }

void json_null(void) { word("null"); }

void json_text_of(const char *name, const char *text)
{
    json_key(name);
    json_text(text);
}

void json_integer_of(const char *name, int64_t x)
{
    json_key(name);
    json_integer(x);
}

void json_boolean_of(const char *name, int x)
{
    json_key(name);
    json_boolean(x);
}

void json_null_of(const char *name)
{
    json_key(name);
    json_null();
}

int32_t json_failure(const char *why)
{
    json_begin();
    json_open('{');
    json_text_of("failure", why);
    json_close('}');
    return json_end();
}
