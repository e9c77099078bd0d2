/* SPDX-License-Identifier: MIT */
/*
 * The public contract as a compiler sees it: every function with its exact type, every constant and initializer.
 * Compiles against <vez.h> as C11 and as C++17; what is missing or of another type is an error. tests/contract.sh
 * defines STAGE, to what is there: 1 the core and the semaphore; 3 all classic synchronizers; 4 tokens, asynchronous
 * requests, wait-for-any; 5 delegated calls; 6 waits with a guard on a mutex.
 */
#include <vez.h>
#ifndef STAGE
#define STAGE 5
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#endif
#ifdef __cplusplus
#define ZERO(T, n) static T n = {}
#else
#define ZERO(T, n) static T n = { 0 }
#endif

static vez_deadline_t forever = VEZ_FOREVER, at_once = VEZ_NOW;
static int broken = VEZ_EBROKEN, closed = VEZ_ECLOSED;
static unsigned flags1 = VEZ_BARGING;
static uint32_t sem_max = VEZ_SEM_MAX;
static vez_sem_t sem3 = VEZ_SEM_INITIALIZER(3);
static vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
ZERO(vez_request_t, request);
static const char *(*const check_vez_strerror)(int result) = vez_strerror;
static vez_deadline_t (*const check_vez_after_ns)(int64_t ns) = vez_after_ns;
static vez_deadline_t (*const check_vez_after_us)(int64_t us) = vez_after_us;
static vez_deadline_t (*const check_vez_after_s)(int64_t s) = vez_after_s;
static vez_deadline_t (*const check_vez_after_ms)(int64_t ms) = vez_after_ms;
static vez_deadline_t (*const check_vez_deadline_from_timespec)(const struct timespec *monotonic) =
	vez_deadline_from_timespec;
static int64_t (*const check_vez_deadline_remaining_ns)(vez_deadline_t deadline) = vez_deadline_remaining_ns;
static void (*const check_vez_cancel_init)(vez_cancel_t *c) = vez_cancel_init;
static void (*const check_vez_cancel_fire)(vez_cancel_t *c) = vez_cancel_fire;
static bool (*const check_vez_cancel_fired)(const vez_cancel_t *c) = vez_cancel_fired;
static bool (*const check_vez_cancel_clear)(vez_cancel_t *c) = vez_cancel_clear;
static vez_cancel_t *(*const check_vez_cancel_self)(void) = vez_cancel_self;
static void (*const check_vez_request_init)(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg),
					    void *arg) = vez_request_init;
static int (*const check_vez_sem_init)(vez_sem_t *s, uint32_t permits, uint32_t max, unsigned flags) = vez_sem_init;
static int (*const check_vez_sem_destroy)(vez_sem_t *s) = vez_sem_destroy;
static int (*const check_vez_sem_acquire)(vez_sem_t *s, uint32_t n) = vez_sem_acquire;
static int (*const check_vez_sem_try_acquire)(vez_sem_t *s, uint32_t n) = vez_sem_try_acquire;
static int (*const check_vez_sem_acquire_until)(vez_sem_t *s, uint32_t n, vez_deadline_t deadline,
						vez_cancel_t *cancel) = vez_sem_acquire_until;
static int (*const check_vez_sem_acquire_key)(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline,
					      vez_cancel_t *cancel) = vez_sem_acquire_key;
static int (*const check_vez_sem_release)(vez_sem_t *s, uint32_t n) = vez_sem_release;
static uint32_t (*const check_vez_sem_permits)(const vez_sem_t *s) = vez_sem_permits;
static uint32_t (*const check_vez_sem_drain)(vez_sem_t *s) = vez_sem_drain;
static int (*const check_vez_sem_close)(vez_sem_t *s) = vez_sem_close;
static size_t (*const check_vez_sem_waiters)(const vez_sem_t *s) = vez_sem_waiters;
static void (*const check_vez_monitor_init)(vez_monitor_t *m, void (*gave_up)(vez_monitor_t *m, vez_room_t *room,
									      vez_request_t *r)) = vez_monitor_init;
static int (*const check_vez_monitor_destroy)(vez_monitor_t *m) = vez_monitor_destroy;
static void (*const check_vez_monitor_enter)(vez_monitor_t *m) = vez_monitor_enter;
static void (*const check_vez_monitor_exit)(vez_monitor_t *m) = vez_monitor_exit;
static int (*const check_vez_monitor_wait)(vez_monitor_t *m, vez_room_t *room, vez_request_t *r,
					   vez_deadline_t deadline, vez_cancel_t *cancel) = vez_monitor_wait;
static bool (*const check_vez_monitor_move)(vez_monitor_t *m, vez_room_t *room, vez_request_t *r) = vez_monitor_move;
static bool (*const check_vez_monitor_keep)(vez_monitor_t *m, vez_request_t *r) = vez_monitor_keep;
static bool (*const check_vez_monitor_settle)(vez_monitor_t *m, vez_request_t *r, int result) = vez_monitor_settle;
static bool (*const check_vez_monitor_settle_unqueued)(vez_monitor_t *m, vez_request_t *r, int result) =
	vez_monitor_settle_unqueued;
static void (*const check_vez_room_init)(vez_room_t *room) = vez_room_init;
static vez_request_t *(*const check_vez_room_first)(const vez_room_t *room) = vez_room_first;
static vez_request_t *(*const check_vez_room_next)(const vez_room_t *room, const vez_request_t *r) = vez_room_next;
static size_t (*const check_vez_room_length)(const vez_room_t *room) = vez_room_length;
static void (*const check_vez_request_set_key)(vez_request_t *r, int64_t key) = vez_request_set_key;
static void (*const check_vez_request_set_value)(vez_request_t *r, void *ptr, uint64_t word) = vez_request_set_value;
static void *(*const check_vez_request_ptr)(const vez_request_t *r) = vez_request_ptr;
static uint64_t (*const check_vez_request_value)(const vez_request_t *r) = vez_request_value;

#if STAGE >= 3
static unsigned flags3 = VEZ_RECURSIVE | VEZ_FAIR | VEZ_ERRORCHECK | VEZ_AUTO_RESET;
static unsigned policies[] = { VEZ_RW_HOARE, VEZ_RW_FIFO, VEZ_RW_READERS };
static vez_mutex_t mutex = VEZ_MUTEX_INITIALIZER;
static vez_cond_t cond = VEZ_COND_INITIALIZER;
static vez_rwlock_t rwlock = VEZ_RWLOCK_INITIALIZER;
static vez_event_t event_ = VEZ_EVENT_INITIALIZER;
static vez_once_t once_ = VEZ_ONCE_INITIALIZER;
static vez_latch_t latch = VEZ_LATCH_INITIALIZER(3);
static vez_sched_t sched = VEZ_SCHED_INITIALIZER;
static vez_group_t group = VEZ_GROUP_INITIALIZER;
static uint32_t barrier_max = VEZ_BARRIER_MAX;
static int (*const check_vez_mutex_init)(vez_mutex_t *m, unsigned flags) = vez_mutex_init;
static int (*const check_vez_mutex_destroy)(vez_mutex_t *m) = vez_mutex_destroy;
static int (*const check_vez_mutex_lock)(vez_mutex_t *m) = vez_mutex_lock;
static int (*const check_vez_mutex_trylock)(vez_mutex_t *m) = vez_mutex_trylock;
static int (*const check_vez_mutex_lock_until)(vez_mutex_t *m, vez_deadline_t deadline,
					       vez_cancel_t *cancel) = vez_mutex_lock_until;
static int (*const check_vez_mutex_unlock)(vez_mutex_t *m) = vez_mutex_unlock;
static unsigned (*const check_vez_mutex_holds)(const vez_mutex_t *m) = vez_mutex_holds;
static size_t (*const check_vez_mutex_waiters)(const vez_mutex_t *m) = vez_mutex_waiters;
static int (*const check_vez_cond_init)(vez_cond_t *c) = vez_cond_init;
static int (*const check_vez_cond_destroy)(vez_cond_t *c) = vez_cond_destroy;
static int (*const check_vez_cond_wait)(vez_cond_t *c, vez_mutex_t *m) = vez_cond_wait;
static int (*const check_vez_cond_wait_until)(vez_cond_t *c, vez_mutex_t *m, vez_deadline_t deadline,
					      vez_cancel_t *cancel) = vez_cond_wait_until;
static int (*const check_vez_cond_wait_key)(vez_cond_t *c, vez_mutex_t *m, int64_t key, vez_deadline_t deadline,
					    vez_cancel_t *cancel) = vez_cond_wait_key;
static size_t (*const check_vez_cond_signal)(vez_cond_t *c) = vez_cond_signal;
static size_t (*const check_vez_cond_broadcast)(vez_cond_t *c) = vez_cond_broadcast;
static size_t (*const check_vez_cond_waiters)(const vez_cond_t *c) = vez_cond_waiters;
static int (*const check_vez_rwlock_init)(vez_rwlock_t *l, unsigned policy) = vez_rwlock_init;
static int (*const check_vez_rwlock_destroy)(vez_rwlock_t *l) = vez_rwlock_destroy;
static int (*const check_vez_rwlock_rdlock)(vez_rwlock_t *l) = vez_rwlock_rdlock;
static int (*const check_vez_rwlock_tryrdlock)(vez_rwlock_t *l) = vez_rwlock_tryrdlock;
static int (*const check_vez_rwlock_rdlock_until)(vez_rwlock_t *l, vez_deadline_t deadline,
						  vez_cancel_t *cancel) = vez_rwlock_rdlock_until;
static int (*const check_vez_rwlock_rdunlock)(vez_rwlock_t *l) = vez_rwlock_rdunlock;
static int (*const check_vez_rwlock_wrlock)(vez_rwlock_t *l) = vez_rwlock_wrlock;
static int (*const check_vez_rwlock_trywrlock)(vez_rwlock_t *l) = vez_rwlock_trywrlock;
static int (*const check_vez_rwlock_wrlock_until)(vez_rwlock_t *l, vez_deadline_t deadline,
						  vez_cancel_t *cancel) = vez_rwlock_wrlock_until;
static int (*const check_vez_rwlock_wrunlock)(vez_rwlock_t *l) = vez_rwlock_wrunlock;
static int (*const check_vez_rwlock_downgrade)(vez_rwlock_t *l) = vez_rwlock_downgrade;
static int (*const check_vez_rwlock_try_upgrade)(vez_rwlock_t *l) = vez_rwlock_try_upgrade;
static int (*const check_vez_rwlock_upgrade_until)(vez_rwlock_t *l, vez_deadline_t deadline,
						   vez_cancel_t *cancel) = vez_rwlock_upgrade_until;
static int (*const check_vez_rwlock_undo_upgrade)(vez_rwlock_t *l) = vez_rwlock_undo_upgrade;
static size_t (*const check_vez_rwlock_waiters)(const vez_rwlock_t *l) = vez_rwlock_waiters;
static int (*const check_vez_barrier_init)(vez_barrier_t *b, uint32_t parties, int (*action)(void *),
					   void *arg) = vez_barrier_init;
static int (*const check_vez_barrier_destroy)(vez_barrier_t *b) = vez_barrier_destroy;
static int (*const check_vez_barrier_wait)(vez_barrier_t *b, uint32_t *index) = vez_barrier_wait;
static int (*const check_vez_barrier_wait_until)(vez_barrier_t *b, uint32_t *index, vez_deadline_t deadline,
						 vez_cancel_t *cancel) = vez_barrier_wait_until;
static int (*const check_vez_barrier_reset)(vez_barrier_t *b) = vez_barrier_reset;
static bool (*const check_vez_barrier_broken)(const vez_barrier_t *b) = vez_barrier_broken;
static size_t (*const check_vez_barrier_waiters)(const vez_barrier_t *b) = vez_barrier_waiters;
static int (*const check_vez_latch_init)(vez_latch_t *l, uint32_t count) = vez_latch_init;
static int (*const check_vez_latch_destroy)(vez_latch_t *l) = vez_latch_destroy;
static int (*const check_vez_latch_count_down)(vez_latch_t *l, uint32_t n) = vez_latch_count_down;
static int (*const check_vez_latch_wait)(vez_latch_t *l) = vez_latch_wait;
static int (*const check_vez_latch_wait_until)(vez_latch_t *l, vez_deadline_t deadline,
					       vez_cancel_t *cancel) = vez_latch_wait_until;
static uint32_t (*const check_vez_latch_count)(const vez_latch_t *l) = vez_latch_count;
static size_t (*const check_vez_latch_waiters)(const vez_latch_t *l) = vez_latch_waiters;
static int (*const check_vez_event_init)(vez_event_t *e, unsigned flags) = vez_event_init;
static int (*const check_vez_event_destroy)(vez_event_t *e) = vez_event_destroy;
static int (*const check_vez_event_set)(vez_event_t *e) = vez_event_set;
static int (*const check_vez_event_reset)(vez_event_t *e) = vez_event_reset;
static int (*const check_vez_event_wait)(vez_event_t *e) = vez_event_wait;
static int (*const check_vez_event_wait_until)(vez_event_t *e, vez_deadline_t deadline,
					       vez_cancel_t *cancel) = vez_event_wait_until;
static bool (*const check_vez_event_is_set)(const vez_event_t *e) = vez_event_is_set;
static size_t (*const check_vez_event_waiters)(const vez_event_t *e) = vez_event_waiters;
static int (*const check_vez_queue_init)(vez_queue_t *q, void *storage, size_t item_size,
					 size_t capacity) = vez_queue_init;
static int (*const check_vez_queue_destroy)(vez_queue_t *q) = vez_queue_destroy;
static int (*const check_vez_queue_put)(vez_queue_t *q, const void *item) = vez_queue_put;
static int (*const check_vez_queue_try_put)(vez_queue_t *q, const void *item) = vez_queue_try_put;
static int (*const check_vez_queue_put_until)(vez_queue_t *q, const void *item, vez_deadline_t deadline,
					      vez_cancel_t *cancel) = vez_queue_put_until;
static int (*const check_vez_queue_take)(vez_queue_t *q, void *item) = vez_queue_take;
static int (*const check_vez_queue_try_take)(vez_queue_t *q, void *item) = vez_queue_try_take;
static int (*const check_vez_queue_take_until)(vez_queue_t *q, void *item, vez_deadline_t deadline,
					       vez_cancel_t *cancel) = vez_queue_take_until;
static int (*const check_vez_queue_close)(vez_queue_t *q) = vez_queue_close;
static size_t (*const check_vez_queue_length)(const vez_queue_t *q) = vez_queue_length;
static size_t (*const check_vez_queue_waiters)(const vez_queue_t *q) = vez_queue_waiters;
static size_t (*const check_vez_queue_putters)(const vez_queue_t *q) = vez_queue_putters;
static size_t (*const check_vez_queue_takers)(const vez_queue_t *q) = vez_queue_takers;
static int (*const check_vez_sched_init)(vez_sched_t *s, bool (*before)(const void *a, const void *b),
					 unsigned flags) = vez_sched_init;
static int (*const check_vez_sched_destroy)(vez_sched_t *s) = vez_sched_destroy;
static int (*const check_vez_sched_min_gap)(vez_sched_t *s, int64_t ns) = vez_sched_min_gap;
static int (*const check_vez_sched_enter)(vez_sched_t *s, const void *what) = vez_sched_enter;
static int (*const check_vez_sched_try_enter)(vez_sched_t *s, const void *what) = vez_sched_try_enter;
static int (*const check_vez_sched_enter_until)(vez_sched_t *s, const void *what, vez_deadline_t deadline,
						vez_cancel_t *cancel) = vez_sched_enter_until;
static int (*const check_vez_sched_leave)(vez_sched_t *s) = vez_sched_leave;
static size_t (*const check_vez_sched_waiters)(const vez_sched_t *s) = vez_sched_waiters;
static int (*const check_vez_group_init)(vez_group_t *g, unsigned flags) = vez_group_init;
static int (*const check_vez_group_destroy)(vez_group_t *g) = vez_group_destroy;
static int (*const check_vez_group_enter)(vez_group_t *g, uint32_t id) = vez_group_enter;
static int (*const check_vez_group_try_enter)(vez_group_t *g, uint32_t id) = vez_group_try_enter;
static int (*const check_vez_group_enter_until)(vez_group_t *g, uint32_t id, vez_deadline_t deadline,
						vez_cancel_t *cancel) = vez_group_enter_until;
static int (*const check_vez_group_leave)(vez_group_t *g) = vez_group_leave;
static size_t (*const check_vez_group_waiters)(const vez_group_t *g) = vez_group_waiters;
static int (*const check_vez_once)(vez_once_t *o, int (*fn)(void *), void *arg) = vez_once;
#endif

#if STAGE >= 4
static int (*const check_vez_cancel_init_child)(vez_cancel_t *child, vez_cancel_t *parent) = vez_cancel_init_child;
static int (*const check_vez_cancel_destroy)(vez_cancel_t *c) = vez_cancel_destroy;
static int (*const check_vez_cancel_attach)(vez_cancel_t *c, vez_cancel_hook_t *h, void (*fn)(void *),
					    void *arg) = vez_cancel_attach;
static int (*const check_vez_cancel_detach)(vez_cancel_t *c, vez_cancel_hook_t *h) = vez_cancel_detach;
static int (*const check_vez_cancel_try_detach)(vez_cancel_t *c, vez_cancel_hook_t *h) = vez_cancel_try_detach;
static int (*const check_vez_sleep_until)(vez_deadline_t moment, vez_cancel_t *cancel) = vez_sleep_until;
static int (*const check_vez_cancel_wait)(vez_cancel_t *c, vez_deadline_t deadline) = vez_cancel_wait;
static int (*const check_vez_cancel_wait_async)(vez_cancel_t *c, vez_request_t *r) = vez_cancel_wait_async;
static int (*const check_vez_cancel_on_signal)(vez_cancel_t *c, int signo) = vez_cancel_on_signal;
static void (*const check_vez_request_init_eventfd)(vez_request_t *r, int efd) = vez_request_init_eventfd;
static void (*const check_vez_request_set_limits)(vez_request_t *r, vez_deadline_t deadline,
						  vez_cancel_t *cancel) = vez_request_set_limits;
static int (*const check_vez_request_cancel)(vez_request_t *r) = vez_request_cancel;
static int (*const check_vez_request_wait)(vez_request_t *r, vez_deadline_t deadline,
					   vez_cancel_t *cancel) = vez_request_wait;
static int (*const check_vez_request_result)(const vez_request_t *r) = vez_request_result;
static void (*const check_vez_select_init)(vez_select_t *s) = vez_select_init;
static vez_request_t *(*const check_vez_select_case)(vez_select_t *s, vez_request_t *r) = vez_select_case;
static int (*const check_vez_select_wait)(vez_select_t *s, vez_deadline_t deadline, vez_cancel_t *cancel,
					  vez_request_t **winner) = vez_select_wait;
static int (*const check_vez_sem_acquire_async)(vez_sem_t *s, uint32_t n, vez_request_t *r) = vez_sem_acquire_async;
static int (*const check_vez_rwlock_rdlock_async)(vez_rwlock_t *l, vez_request_t *r) = vez_rwlock_rdlock_async;
static int (*const check_vez_rwlock_wrlock_async)(vez_rwlock_t *l, vez_request_t *r) = vez_rwlock_wrlock_async;
static int (*const check_vez_latch_wait_async)(vez_latch_t *l, vez_request_t *r) = vez_latch_wait_async;
static int (*const check_vez_event_wait_async)(vez_event_t *e, vez_request_t *r) = vez_event_wait_async;
static int (*const check_vez_queue_put_async)(vez_queue_t *q, const void *item, vez_request_t *r) = vez_queue_put_async;
static int (*const check_vez_queue_take_async)(vez_queue_t *q, void *item, vez_request_t *r) = vez_queue_take_async;
static int (*const check_vez_group_enter_async)(vez_group_t *g, uint32_t id, vez_request_t *r) = vez_group_enter_async;
static int (*const check_vez_monitor_wait_async)(vez_monitor_t *m, vez_room_t *room,
						 vez_request_t *r) = vez_monitor_wait_async;
static int (*const check_vez_cancel_fire_at)(vez_cancel_t *c, vez_deadline_t deadline) = vez_cancel_fire_at;
static void (*const check_vez_completions_init)(vez_completions_t *l, int efd) = vez_completions_init;
static void (*const check_vez_request_init_completions)(vez_request_t *r,
							vez_completions_t *l) = vez_request_init_completions;
static vez_request_t *(*const check_vez_completions_next)(vez_completions_t *l) = vez_completions_next;
static int (*const check_vez_completions_wait)(vez_completions_t *l, vez_deadline_t deadline,
					       vez_cancel_t *cancel) = vez_completions_wait;
#endif

#if STAGE >= 5
static int (*const check_vez_object_init)(vez_object_t *o, void *self, unsigned flags) = vez_object_init;
static int (*const check_vez_object_destroy)(vez_object_t *o) = vez_object_destroy;
static int (*const check_vez_object_call)(vez_object_t *o, const vez_operation_t *op, void *arg) = vez_object_call;
static int (*const check_vez_object_try_call)(vez_object_t *o, const vez_operation_t *op,
					      void *arg) = vez_object_try_call;
static int (*const check_vez_object_call_until)(vez_object_t *o, const vez_operation_t *op, void *arg,
	vez_deadline_t deadline, vez_cancel_t *cancel) = vez_object_call_until;
static int (*const check_vez_object_call_async)(vez_object_t *o, const vez_operation_t *op, void *arg,
						vez_request_t *r) = vez_object_call_async;
static size_t (*const check_vez_object_waiters)(const vez_object_t *o) = vez_object_waiters;
static int (*const check_vez_constraint_add)(vez_object_t *o, const vez_operation_t *op,
	bool (*guard)(void *, void *), void *arg, vez_constraint_t *c) = vez_constraint_add;
static int (*const check_vez_constraint_remove)(vez_constraint_t *c) = vez_constraint_remove;
static int (*const check_vez_trigger_add)(vez_object_t *o, const vez_operation_t *op, void (*fn)(void *, void *),
					  void *arg, vez_trigger_t *t) = vez_trigger_add;
static int (*const check_vez_trigger_remove)(vez_trigger_t *t) = vez_trigger_remove;
static int (*const check_vez_synchronizer_init)(vez_synchronizer_t *s, vez_object_t *const *objects,
						size_t count) = vez_synchronizer_init;
static int (*const check_vez_synchronizer_destroy)(vez_synchronizer_t *s) = vez_synchronizer_destroy;
static int (*const check_vez_synchronizer_constraint_add)(vez_synchronizer_t *s, vez_object_t *o,
	const vez_operation_t *op, bool (*guard)(void *, void *), void *arg,
	vez_constraint_t *c) = vez_synchronizer_constraint_add;
static int (*const check_vez_synchronizer_trigger_add)(vez_synchronizer_t *s, vez_object_t *o,
	const vez_operation_t *op, void (*fn)(void *, void *), void *arg,
	vez_trigger_t *t) = vez_synchronizer_trigger_add;
static int (*const check_vez_guarded_call)(vez_guarded_t f, void *arg) = vez_guarded_call;
static int (*const check_vez_monitor_call)(vez_monitor_t *m, void (*body)(void *), void *arg) = vez_monitor_call;
static int (*const check_vez_monitor_call_when)(vez_monitor_t *m, bool (*guard)(void *), void (*body)(void *),
	void *arg, vez_deadline_t deadline, vez_cancel_t *cancel) = vez_monitor_call_when;
static int (*const check_vez_monitor_call_async)(vez_monitor_t *m, bool (*guard)(void *), void (*body)(void *),
						 void *arg, vez_request_t *r) = vez_monitor_call_async;
static int (*const check_vez_inspect)(FILE *out) = vez_inspect;
static void (*const check_vez_inspect_enable)(bool on) = vez_inspect_enable;
static int (*const check_vez_inspect_name)(const void *object, const char *name) = vez_inspect_name;
#endif

#if STAGE >= 6
static int (*const check_vez_mutex_await)(vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
					  vez_cancel_t *cancel) = vez_mutex_await;
static int (*const check_vez_mutex_lock_when)(vez_mutex_t *m, bool (*guard)(void *arg), void *arg,
	vez_deadline_t deadline, vez_cancel_t *cancel) = vez_mutex_lock_when;
static int (*const check_vez_cond_wait_when)(vez_cond_t *c, vez_mutex_t *m, bool (*guard)(void *arg), void *arg,
	vez_deadline_t deadline, vez_cancel_t *cancel) = vez_cond_wait_when;
static int (*const check_vez_rwlock_unlock)(vez_rwlock_t *l) = vez_rwlock_unlock;
#endif

int vez_contract_checked;
