/* A stand-in for libmariadb.so.3: each query answers with a row of its own text, or of a number where it asks for the
   status; "SELECT broken" is refused, "SELECT moody" answers otherwise every time, and "SELECT slow" takes 1.5 s. */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

struct handle { char text[4096]; unsigned long sent; const char *said; };
struct result { char text[4096]; char *row[1]; unsigned long length[1]; int left; };

void *mysql_init(void *none) { return calloc(1, sizeof(struct handle)); }
void *mysql_real_connect(struct handle *h, const char *host, const char *user, const char *password, const char *name,
                         unsigned port, const char *socket, unsigned long flags) {
    h->said = "Access denied";
    return strcmp(user, "nobody") ? h : NULL;
}
int mysql_real_query(struct handle *h, const char *text, unsigned long length) {
    memcpy(h->text, text, length);
    h->text[length] = 0;
    if (strcmp(h->text, "SELECT death") == 0) abort();
    if (strcmp(h->text, "SELECT slow") == 0) usleep(500000);
    h->said = "Table 'broken' doesn't exist";
    return strcmp(h->text, "SELECT broken") == 0;
}
void *mysql_store_result(struct handle *h) {
    struct result *r = calloc(1, sizeof *r);
    if (strncmp(h->text, "SHOW", 4) == 0) sprintf(r->text, "%lu", h->sent);
    else if (strcmp(h->text, "SELECT moody") == 0) sprintf(r->text, "%lu", h->sent);
    else strcpy(r->text, h->text);
    h->sent += 100 + strlen(r->text);
    r->row[0] = r->text;
    r->length[0] = strlen(r->text);
    r->left = 1;
    return r;
}
unsigned long long mysql_num_rows(struct result *r) { return 1; }
unsigned mysql_num_fields(struct result *r) { return 1; }
char **mysql_fetch_row(struct result *r) { return r->left-- > 0 ? r->row : NULL; }
unsigned long *mysql_fetch_lengths(struct result *r) { return r->length; }
void mysql_free_result(struct result *r) { free(r); }
const char *mysql_error(struct handle *h) { return h->said; }
