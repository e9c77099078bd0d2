/* SPDX-License-Identifier: MIT */
/* A program with the conditions of before 2003, which are pointers: it is not counted, and works. */
#include <pthread.h>

__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver pthread_cond_init, pthread_cond_init@GLIBC_2.2.5");

int main(void)
{
	union {
		pthread_cond_t whole;
		void *words[6];
	} cond = { .words = { 0, &cond, &cond, &cond, &cond, &cond } };
	pthread_cond_init(&cond.whole, NULL);
	pthread_cond_signal(&cond.whole);
	return cond.words[1] != &cond || cond.words[5] != &cond;
}
