/* SPDX-License-Identifier: MIT */
/* Results in words. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <vez.h>

#include "variant.h"

TestSuite(error, .timeout = 60);

/* Seen to fail: two results with one text; an unknown one without. */
Test(error, ALL_each_result_has_words_of_its_own)
{
	static const int results[] = {
		0, EINPROGRESS, EBUSY, ETIMEDOUT, ECANCELED, VEZ_ECLOSED, VEZ_EBROKEN, EALREADY, EDEADLK, EPERM, EINVAL,
		EOVERFLOW, EAGAIN, ENOMEM, INT_MAX,
	};
	enum { COUNT = sizeof results / sizeof results[0] };
	errno = 77;
	for (int i = 0; i < COUNT; i++) {
		const char *text = vez_strerror(results[i]);
		cr_assert(text && *text && text[strlen(text) - 1] != '.', "%d", results[i]);
		EXPECT(vez_strerror(results[i]) == text);
		for (int j = 0; j < i; j++)
			cr_assert(strcmp(text, vez_strerror(results[j])) != 0, "%d: %s", results[i], text);
	}
	EXPECT(vez_strerror(-1) == vez_strerror(INT_MAX));
	EXPECT(vez_strerror(INT_MIN) == vez_strerror(EINTR));
	EXPECT_EQ(errno, 77);
}
