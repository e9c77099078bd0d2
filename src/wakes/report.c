/* SPDX-License-Identifier: MIT */
/*
 * The report: which sites are in it, what they are called, and the report as a text for people.
 *
 * It says what was counted and what that takes on this machine. What another synchronizer would take it cannot know.
 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const report_kinds[] = {
	[WAKES_WAIT] = "wait", [WAKES_TIMED] = "timed wait", [WAKES_SIGNAL] = "signal", [WAKES_BROADCAST] = "broadcast",
};

/* ---- which sites ---- */

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (row_waits(x) != row_waits(y))
		return row_waits(x) ? 1 : -1;
	if (x->in_vain != y->in_vain)
		return x->in_vain < y->in_vain ? 1 : -1;
	if (x->woken != y->woken)
		return x->woken < y->woken ? 1 : -1;
	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

/* Keeps so many of those that wake and of those that wait. */
static size_t keep_top(struct row *rows, size_t count, size_t top)
{
	size_t kept = 0, of_kind = 0;
	for (size_t i = 0; i < count; i++) {
		of_kind = i > 0 && row_waits(&rows[i]) == row_waits(&rows[i - 1]) ? of_kind + 1 : 1;
		if (of_kind <= top)
			rows[kept++] = rows[i];
	}
	return kept;
}

static void make_row(struct row *row, const struct image *image, const struct wakes_site *site)
{
	*row = (struct row){ .image = image, .kind = wakes_kind(site->key), .calls = site->calls, .woken = site->woken,
		.in_vain = site->in_vain };
	row->missed = row_waits(row) ? site->timeouts : site->nobody;
	for (; row->frames < WAKES_FRAMES && site->frame[row->frames].address != 0; row->frames++) {
		const struct wakes_frame *f = &site->frame[row->frames];
		row->address[row->frames] = f->address;
		row->name[row->frames].offset = f->offset;
		if (f->file > 0 && f->file <= WAKES_FILES)
			row->name[row->frames].path = image->table->file[f->file - 1].path;
	}
}

static void add_rows(struct report *r, const struct image *image)
{
	const struct wakes_table *t = image->table;
	size_t count = 0;
	struct row *rows = realloc(r->rows, (r->count + wakes_sites(t) + 1) * sizeof *rows);
	if (!rows)
		return;
	r->rows = rows;
	rows += r->count;
	for (size_t i = 0; i < wakes_sites(t); i++)
		if (t->sites[i].key != 0 && t->sites[i].calls != 0)
			make_row(&rows[count++], image, &t->sites[i]);
	if (count)
		qsort(rows, count, sizeof *rows, by_weight);
	r->count += keep_top(rows, count, r->top);
}

static void find_names(struct report *r)
{
	size_t size = sizeof r->rows->name, each = WAKES_FRAMES;
	struct name *names = malloc((r->count + 1) * size);
	if (!names)
		return;
	for (size_t i = 0; i < r->count; i++)
		memcpy(&names[i * each], r->rows[i].name, size);
	names_find(names, r->count * each);
	for (size_t i = 0; i < r->count; i++)
		memcpy(r->rows[i].name, &names[i * each], size);
	free(names);
}

void report_make(struct report *r, const struct run *run, const char *folder, uint64_t end, size_t top)
{
	*r = (struct report){ .run = run, .top = top };
	images_read(&r->images, folder, run->pid, end);
	r->images.sum.seconds = run->seconds;
	for (size_t i = 0; i < r->images.count && i < top; i++)
		add_rows(r, &r->images.list[i]);
	find_names(r);
	if (r->images.sum.in_vain)
		r->price = price_measure();
}

/* Half a percent of the processor time or five of the switches, and ten a second. */
bool report_matters(const struct report *r)
{
	const struct image *sum = &r->images.sum;
	double cpu = (double)sum->in_vain * r->price.cpu, switches = (double)sum->in_vain * r->price.switches;
	return rate(sum->in_vain, sum->seconds) >= 10 &&
		(r->price.cpu == 0 || cpu >= 0.005 * r->run->cpu || switches >= 0.05 * r->run->switches);
}

/* ---- as text ---- */

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void print_cost(FILE *to, const struct report *r)
{
	const struct run *run = r->run;
	double count = (double)r->images.sum.in_vain;
	double cpu = count * r->price.cpu, switches = count * r->price.switches;
	if (r->price.cpu == 0) {
		fprintf(to, "vez-wakes: what that takes could not be measured on this machine\n");
		return;
	}
	fprintf(to, "vez-wakes: %sabout %.3f s of processor time (%.1f %%) and %.0f switches (%.0f %%)\n",
		report_matters(r) ? "" : "nothing to gain: ", cpu, percent(cpu, run->cpu), switches,
		percent(switches, run->switches));
	fprintf(to, "vez-wakes: by a measurement on this machine: one wake in vain takes %.1f us and %.1f switches\n",
		r->price.cpu * 1e6, r->price.switches);
}

static void print_summary(FILE *to, const struct report *r)
{
	const struct run *run = r->run;
	const struct image *sum = &r->images.sum;
	fprintf(to, "vez-wakes:");
	for (char *const *word = run->command; *word; word++)
		fprintf(to, " %s", *word);
	fprintf(to, ": %.2f s, %.2f s of processor time, %.0f switches\n", run->seconds, run->cpu, run->switches);
	if (sum->wakes == 0) {
		fprintf(to, "vez-wakes: nothing to gain: nobody was woken at a condition\n");
		return;
	}
	fprintf(to, "vez-wakes: %" PRIu64 " wakes, %" PRIu64 " of them in vain (%.0f %%), %.0f a second\n", sum->wakes,
		sum->in_vain, percent((double)sum->in_vain, (double)sum->wakes), rate(sum->in_vain, sum->seconds));
	if (sum->in_vain)
		print_cost(to, r);
	else
		fprintf(to, "vez-wakes: nothing to gain: no wake was in vain\n");
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void print_name(FILE *to, const struct row *row, size_t frame)
{
	const struct name *n = &row->name[frame];
	if (n->function)
		fprintf(to, "%s", n->function);
	if (n->source)
		fprintf(to, " (%s)", last_part(n->source));
	if (!n->path)
		fprintf(to, "0x%" PRIx64, row->address[frame]);
	else if (!n->function || strcmp(n->path, row->image->table->program))
		fprintf(to, "%s%s+0x%" PRIx64, n->function ? ", " : "", last_part(n->path), n->offset);
	fputc('\n', to);
}

static void print_row(FILE *to, const struct report *r, const struct row *row)
{
	double in_vain = (double)row->in_vain;
	fprintf(to, "%9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9.0f %9.1f %9.0f  ", row->calls,
		row->missed, row->woken, row->in_vain, rate(row->in_vain, row->image->seconds),
		in_vain * r->price.cpu * 1e3, in_vain * r->price.switches);
	fprintf(to, "%s ", report_kinds[row->kind]);
	print_name(to, row, 0);
	for (size_t i = 1; i < row->frames; i++) {
		fprintf(to, "%72sfrom ", "");
		print_name(to, row, i);
	}
}

static void print_head(FILE *to, bool waits)
{
	fprintf(to, "%9s %9s %9s %9s %9s %9s %9s  %s\n", waits ? "waits" : "calls", waits ? "timeouts" : "to nobody",
		waits ? "wakes" : "woke", "in vain", "a second", "ms", "switches", waits ? "who waits" : "who wakes");
}

static void print_image(FILE *to, const struct report *r, const struct image *image)
{
	fprintf(to, "\nprocess %" PRId64 ", %s, %.2f s: %" PRIu64 " wakes, %" PRIu64 " in vain\n", image->table->pid,
		image->table->program, image->seconds, image->wakes, image->in_vain);
	int head = -1;
	for (size_t i = 0; i < r->count; i++) {
		if (r->rows[i].image != image)
			continue;
		if (head != row_waits(&r->rows[i]))
			print_head(to, row_waits(&r->rows[i]));
		head = row_waits(&r->rows[i]);
		print_row(to, r, &r->rows[i]);
	}
	if (image->table->lost)
		fprintf(to, "%9" PRIu64 " calls by other sites were not counted: there are too many\n",
			(uint64_t)image->table->lost);
}

void report_text(FILE *to, const struct report *r)
{
	size_t quiet = 0;
	print_summary(to, r);
	for (size_t i = 0; i < r->images.count; i++) {
		const struct image *image = &r->images.list[i];
		if (i < r->top && image->waits + image->signals + image->broadcasts)
			print_image(to, r, image);
		else
			quiet++;
	}
	if (quiet && r->images.count > 1)
		fprintf(to, "\n%zu more process%s\n", quiet, quiet == 1 ? "" : "es");
}
