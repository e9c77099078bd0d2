/* SPDX-License-Identifier: MIT */
/*
 * The report as JSON: one object.
 */
#include <inttypes.h>

#include "report.h"

static void put_string(FILE *to, const char *text)
{
	if (!text) {
		fputs("null", to);
		return;
	}
	fputc('"', to);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(to, "\\u%04x", *c);
		else
			fputc(*c, to);
	}
	fputc('"', to);
}

static void put_run(FILE *to, const struct report *r)
{
	const struct run *run = r->run;
	fputs("{\n  \"command\": [", to);
	for (char *const *word = run->command; *word; word++) {
		fputs(word == run->command ? "" : ", ", to);
		put_string(to, *word);
	}
	fprintf(to, "],\n  \"status\": %d, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"switches\": %.0f,\n",
		run->status, run->seconds, run->cpu, run->switches);
	fprintf(to, "  \"nothing_to_gain\": %s,\n", report_matters(r) ? "false" : "true");
	if (r->images.sum.in_vain)
		fprintf(to, "  \"wake_in_vain\": {\"cpu_us\": %.3f, \"switches\": %.3f},\n", r->price.cpu * 1e6,
			r->price.switches);
	else
		fputs("  \"wake_in_vain\": null,\n", to);
}

static void put_sum(FILE *to, const struct image *i)
{
	fprintf(to,
		"\"waits\": %" PRIu64 ", \"wakes\": %" PRIu64 ", \"in_vain\": %" PRIu64 ", \"timeouts\": %" PRIu64
		", \"signals\": %" PRIu64 ", \"broadcasts\": %" PRIu64 ", \"to_nobody\": %" PRIu64,
		i->waits, i->wakes, i->in_vain, i->timeouts, i->signals, i->broadcasts, i->nobody);
}

/* The members of a place; without the braces. */
static void put_place(FILE *to, const struct row *row, size_t frame)
{
	const struct name *n = &row->name[frame];
	fputs("\"function\": ", to);
	put_string(to, n->function);
	fputs(", \"source\": ", to);
	put_string(to, n->source);
	fputs(", \"file\": ", to);
	put_string(to, n->path);
	fprintf(to, ", \"offset\": %" PRIu64 ", \"address\": %" PRIu64, n->offset,
		row->address[frame]);
}

static void put_callers(FILE *to, const struct row *row)
{
	fputs("\n       \"callers\": [", to);
	for (size_t i = 1; i < row->frames; i++) {
		fputs(i > 1 ? ",\n        {" : "{", to);
		put_place(to, row, i);
		fputc('}', to);
	}
	fputs("],", to);
}

static void put_row(FILE *to, const struct row *row)
{
	fprintf(to, "\n      {\"kind\": \"%s\", ", report_kinds[row->kind]);
	put_place(to, row, 0);
	fputs(",", to);
	if (row->frames > 1)
		put_callers(to, row);
	fprintf(to, "\n       \"calls\": %" PRIu64, row->calls);
	fprintf(to, ", \"%s\": %" PRIu64 ", \"%s\": %" PRIu64 ", \"in_vain\": %" PRIu64 ", \"in_vain_a_second\": %.3f}",
		row_waits(row) ? "timeouts" : "to_nobody", row->missed,
		row_waits(row) ? "wakes" : "woke", row->woken, row->in_vain,
		rate(row->in_vain, row->image->seconds));
}

static void put_rows(FILE *to, const struct report *r, const struct image *image, bool waits)
{
	const char *between = "";
	fprintf(to, "\"%s\": [", waits ? "waiters" : "wakers");
	for (size_t i = 0; i < r->count; i++) {
		if (r->rows[i].image != image || row_waits(&r->rows[i]) != waits)
			continue;
		fputs(between, to);
		put_row(to, &r->rows[i]);
		between = ",";
	}
	fputs("]", to);
}

static void put_image(FILE *to, const struct report *r, const struct image *image)
{
	fprintf(to, "\n    {\"pid\": %" PRId64 ", \"parent\": %" PRId64 ", \"program\": ", image->table->pid,
		image->table->parent);
	put_string(to, image->table->program);
	fprintf(to, ", \"seconds\": %.6f,\n     ", image->seconds);
	put_sum(to, image);
	fprintf(to, ", \"lost\": %" PRIu64 ",\n     ", (uint64_t)image->table->lost);
	put_rows(to, r, image, false);
	fputs(",\n     ", to);
	put_rows(to, r, image, true);
	fputc('}', to);
}

void report_json(FILE *to, const struct report *r)
{
	put_run(to, r);
	fputs("  \"sum\": {", to);
	put_sum(to, &r->images.sum);
	fputs("},\n  \"processes\": [", to);
	for (size_t i = 0; i < r->images.count; i++) {
		fputs(i ? "," : "", to);
		put_image(to, r, &r->images.list[i]);
	}
	fputs("]\n}\n", to);
}
