// Shows `Synchronization.Mutex` to ThreadSanitizer; linked into the programs of `make test-tsan` and nowhere else.
//
// Without a waiter, a Mutex is two atomic operations that the compiler puts into our own code, and the sanitizer sees
// them. With a waiter, Linux hands the lock over in the kernel, called by a library that comes without
// instrumentation: the sanitizer takes each such meeting for a race. The functions below stand before that library's,
// call them, and say what has happened. On Apple's systems a Mutex is a lock that the sanitizer knows.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __linux__

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

static void *next(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  if (function) return function;
  fprintf(stderr, "tsan-mutex: this toolchain's Mutex has other names: %s is not there\n", name);
  abort();
}

SWIFT void lock_slow(uint32_t thread, SELF) {
  SWIFT void (*library)(uint32_t, SELF) = next(LOCK);
  library(thread, self);
  __tsan_acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
  SWIFT bool (*library)(SELF) = next(TRY_LOCK);
  bool isLocked = library(self);
  if (isLocked) __tsan_acquire(self);
  return isLocked;
}

SWIFT void unlock_slow(SELF) {
  SWIFT void (*library)(SELF) = next(UNLOCK);
  __tsan_release(self);
  library(self);
}

#endif
