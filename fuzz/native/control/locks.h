// The locks that TensorFlow's libraries take, and the conditions that they wait for, found in them
// by symbol and interposed.
#pragma once

#include <string>

namespace litmusfuzz::locks {

/// What is called around a lock and an unlock, of absl's Mutex or of nsync's, and in place of a
/// wait for a condition variable, of those two or the standard library's.
struct Interposed {
  /// Before the lock is acquired: it may wait until that does not have to wait.
  void (*lock)(void* mutex, bool shared);
  /// After the lock has been released.
  void (*unlocked)(void* mutex, bool shared);
  /// Whether `wait` is called, without the lock, instead of the wait. Whoever waits looks at its
  /// condition again, as always.
  bool (*waits)();
  void (*wait)();
};

/// Interposes the locks of all loaded libraries of TensorFlow; "" or why that is not possible.
/// Calls go through each library's table of imported functions (GOT), which is changed in
/// place: no LD_PRELOAD, and processes that are forked from this one have it too.
std::string interpose(const Interposed& with);

/// Once they are: "" or why waits for conditions are not among them.
std::string lacking_waits();

}  // namespace litmusfuzz::locks
