/* SPDX-License-Identifier: MIT */
/* The results of calls, in words. */
#include "vez/error.h"

const char *vez_strerror(int result)
{
	switch (result) {
	case 0: return "success";
	case EINPROGRESS: return "the request is queued";
	case EBUSY: return "the object is in use, or would have to be waited for";
	case ETIMEDOUT: return "the deadline has passed";
	case ECANCELED: return "the wait was called off";
	case VEZ_ECLOSED: return "the object is closed";
	case VEZ_EBROKEN: return "the barrier is broken";
	case EALREADY: return "it has been decided already";
	case EDEADLK: return "the caller would wait for itself";
	case EPERM: return "the caller does not hold it";
	case EINVAL: return "an argument is not valid";
	case EOVERFLOW: return "a count would become too large";
	case EAGAIN: return "the thread that keeps deadlines could not be made";
	case ENOMEM: return "no memory is left";
	default: return "an error that vez does not know";
	}
}
