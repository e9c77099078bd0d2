/* SPDX-License-Identifier: MIT */
/* What others ask of objects. */
#ifndef VEZ__CONSTRAINT_H
#define VEZ__CONSTRAINT_H

/* In a forked child: nobody is relating objects. */
void vez__constraint_forget(void);

#endif
