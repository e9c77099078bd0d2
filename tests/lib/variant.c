/* SPDX-License-Identifier: MIT */
/* The variants of a behaviour. */
#include "variant.h"

#include <stdio.h>
#include <string.h>
#include <vez.h>

#include "futex/self.h"
#include "futex/slot.h"

static const char *const form_names[FORMS] = {
	[UNTIMED] = "untimed", [FAR] = "far deadline", [TOKEN] = "token", [TOKEN_FAR] = "token and far deadline",
	[KEYED] = "keyed", [ASYNC] = "asynchronous", [ASYNC_FAR] = "asynchronous, far deadline",
	[ASYNC_TOKEN] = "asynchronous, token",
};

bool variant_async;

static char text[128] = "no variant";

bool form_has_token(enum form form)
{
	return form == TOKEN || form == TOKEN_FAR || form == KEYED || form == ASYNC_TOKEN;
}

bool form_has_deadline(enum form form)
{
	return form == FAR || form == TOKEN_FAR || form == KEYED;
}

const char *variant_text(void)
{
	return text;
}

/* The next combination, of all. */
static bool advance(struct variant *v)
{
	if (++v->form < (variant_async ? FORMS : ASYNC))
		return true;
	v->form = 0;
	v->flags ^= VEZ_BARGING;
	if (v->flags)
		return true;
	return ++v->fault < FAULTS;
}

static bool wanted(const struct variant *v, unsigned which)
{
	return !((which & FIFO_ONLY) && v->flags) && !((which & WITH_TOKEN) && !form_has_token(v->form)) &&
	       !((which & WITHOUT_TOKEN) && form_has_token(v->form)) &&
	       !((which & WITH_DEADLINE) && !form_has_deadline(v->form)) &&
	       !((which & ONE_FORM) && v->form != UNTIMED) && !((which & BY_THREAD) && v->form >= ASYNC);
}

bool variant_next(struct variant *v, bool *begun, unsigned which)
{
	do {
		if (*begun && !advance(v)) {
			inject_reset(FAULT_NONE);
			return false;
		}
		*begun = true;
	} while (!wanted(v, which));
	inject_reset(v->fault);
	snprintf(text, sizeof text, "%s, %s, %s", form_names[v->form], v->flags ? "barging" : "FIFO",
		 fault_names[v->fault]);
	return true;
}

const unsigned mutex_kinds[3] = { 0, VEZ_RECURSIVE, VEZ_ERRORCHECK };

unsigned fairness(const struct variant *v)
{
	return v->flags ? 0 : VEZ_FAIR;
}

vez_mutex_t make_mutex(unsigned flags)
{
	vez_mutex_t m;
	memset(&m, 0xa5, sizeof m);
	EXPECT_EQ(vez_mutex_init(&m, flags), 0);
	return m;
}

void neighbours_from_now_on(void)
{
	do
		vez__number_take();
	while (vez__slot_bit(vez__slot_mine()) != UINT32_C(1) << 31);
}
