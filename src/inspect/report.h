/* SPDX-License-Identifier: MIT */
/* What is listed. */
#ifndef VEZ__REPORT_H
#define VEZ__REPORT_H

#include <stdio.h>

/* Lists to out, unless that is NULL, as vez_inspect does. */
int vez__report(FILE *out);

#endif
