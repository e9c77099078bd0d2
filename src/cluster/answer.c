/* SPDX-License-Identifier: MIT */
/* What the codes of ZooKeeper's client mean. */
#include "call.h"

/* A server's answers are success, the errors of its interface (below ZAPIERROR, without those of the session), and a
 * few of the others. All else is of the client: whatever broke the connection (no socket, an answer that it did not
 * wait for), told to all calls that were under way. */
bool vez__unanswered(int rc)
{
	switch (rc) {
	case ZOK:
	case ZDATAINCONSISTENCY:
	case ZMARSHALLINGERROR:
	case ZUNIMPLEMENTED:
	case ZBADARGUMENTS:
		return false;
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZCLOSING:
		return true;
	default:
		return rc > ZAPIERROR;
	}
}

int vez__errno_of(int rc)
{
	switch (rc) {
	case ZOK:
		return 0;
	case ZNONODE:
		return ENOENT;
	case ZNOAUTH:
	case ZINVALIDACL:
	case ZAUTHFAILED:
		return EACCES;
	default:
		return EIO;
	}
}
