/* SPDX-License-Identifier: MIT */
/*
 * Calls of functions that are the user's. They must return: what comes after them gives up a lock, or lets threads go
 * that wait for it. An exception that was thrown in one, or the end of the thread there (pthread_exit, pthread_cancel),
 * would skip that without a word, as the frames of C have nothing to be done on their way; so it ends the program
 * there.
 */
#ifndef VEZ__FOREIGN_H
#define VEZ__FOREIGN_H

/* The frame that it is in has a word to say before it is unwound: vez__foreign_left. Nothing is executed. Where the
 * compiler describes no frames nothing is unwound through them, and where it describes them otherwise nothing is
 * said. */
#if defined(__GCC_HAVE_DWARF2_CFI_ASM) && !defined(__arm__)
#define VEZ__NOT_UNWOUND __asm__(".cfi_personality 0x1b, vez__foreign_left") /* relative to itself, 4 bytes */
#else
#define VEZ__NOT_UNWOUND __asm__("")
#endif

/* One call of a user's function, or an assignment of what it returns. Once more after it, so that the frame is still
 * there while it runs. */
#define VEZ__FOREIGN(call) \
	do { \
		VEZ__NOT_UNWOUND; \
		call; \
		VEZ__NOT_UNWOUND; \
	} while (0)

#endif
