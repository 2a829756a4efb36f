// The locks that TensorFlow's libraries take, found in them by symbol and interposed.
#pragma once

#include <string>

namespace litmusfuzz::locks {

/// What is called in place of a lock and an unlock of absl's Mutex.
struct Interposed {
  /// True if it has acquired the lock by `acquire`.
  bool (*lock)(void* mutex, bool shared);
  /// After the lock has been released.
  void (*unlocked)(void* mutex, bool shared);
};

/// Interposes the locks of all loaded libraries of TensorFlow; "" or why that is not possible.
/// Calls go through each library's table of imported functions (GOT), which is changed in
/// place: no LD_PRELOAD, and processes that are forked from this one have it too.
std::string interpose(const Interposed& with);

/// Acquires a lock as if nothing were interposed.
void acquire(void* mutex, bool shared);

}  // namespace litmusfuzz::locks
