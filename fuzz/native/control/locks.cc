#include "locks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace litmusfuzz::locks {
namespace {

using Call = void (*)(void*);
using Pointer = void (*)();

Interposed interposed;

/// A function that acquires or releases a lock, or waits: its mangled name has this beginning and
/// one of these ends.
struct Function {
  const char* prefix;
  const char* ends[2];
  Pointer ours;
  Pointer real = nullptr;

  template <typename Returned, typename... Given>
  Function(const char* beginning, const char* end, const char* older, Returned (*its)(Given...))
      : prefix(beginning), ends{end, older}, ours(reinterpret_cast<Pointer>(its)) {}

  void call(void* mutex) const { reinterpret_cast<Call>(real)(mutex); }
};

template <size_t kWhich>
void acquire(void* mutex);
template <size_t kWhich>
void acquire_shared(void* mutex);
template <size_t kWhich>
void release(void* mutex);
template <size_t kWhich>
void release_shared(void* mutex);

/// A kind of lock.
struct Kind {
  const char* name;
  Function functions[4];
};
/// TensorFlow's own mutex is absl's since release 2.19, and nsync's before, which has the same
/// address. Both are used in older releases. Between the two parts of the name of absl's is a
/// namespace that names absl's release; the second end is that of releases before 2025.
Kind kinds[] = {
    {"absl::Mutex",
     {{"_ZN4absl", "5Mutex4lockEv", "5Mutex4LockEv", acquire<0>},
      {"_ZN4absl", "5Mutex11lock_sharedEv", "5Mutex10ReaderLockEv", acquire_shared<0>},
      {"_ZN4absl", "5Mutex6unlockEv", "5Mutex6UnlockEv", release<0>},
      {"_ZN4absl", "5Mutex13unlock_sharedEv", "5Mutex12ReaderUnlockEv", release_shared<0>}}},
    {"nsync_mu",
     {{"_ZN5nsync", "13nsync_mu_lockEPNS_11nsync_mu_s_E", nullptr, acquire<1>},
      {"_ZN5nsync", "14nsync_mu_rlockEPNS_11nsync_mu_s_E", nullptr, acquire_shared<1>},
      {"_ZN5nsync", "15nsync_mu_unlockEPNS_11nsync_mu_s_E", nullptr, release<1>},
      {"_ZN5nsync", "16nsync_mu_runlockEPNS_11nsync_mu_s_E", nullptr, release_shared<1>}}},
};

uint64_t wait_absl(void* condition, void* mutex, uint64_t timeout);
void wait_nsync(void* condition, void* mutex);
void wait_standard(void* condition, std::unique_lock<std::mutex>* lock);

/// Of `kinds`, then that of the standard library, in which Eigen's barriers wait for an op's parts.
Function waits[] = {
    {"_ZN4absl", "7CondVar10WaitCommonEPNS0_5MutexENS0_24synchronization_internal13KernelTimeoutE",
     nullptr, wait_absl},
    {"_ZN5nsync", "13nsync_cv_waitEPNS_11nsync_cv_s_EPNS_11nsync_mu_s_E", nullptr, wait_nsync},
    {"_ZNSt18condition_variable4wait", "ERSt11unique_lockISt5mutexE", nullptr, wait_standard},
};

template <size_t kWhich>
void acquire(void* mutex) {
  interposed.lock(mutex, false);
  kinds[kWhich].functions[0].call(mutex);
}
template <size_t kWhich>
void acquire_shared(void* mutex) {
  interposed.lock(mutex, true);
  kinds[kWhich].functions[1].call(mutex);
}
template <size_t kWhich>
void release(void* mutex) {
  kinds[kWhich].functions[2].call(mutex);
  interposed.unlocked(mutex, false);
}
template <size_t kWhich>
void release_shared(void* mutex) {
  kinds[kWhich].functions[3].call(mutex);
  interposed.unlocked(mutex, true);
}

/// Waits without a lock, if that is what decides.
template <size_t kWhich>
bool waits_for_parts(void* mutex) {
  if (!interposed.waits()) return false;
  release<kWhich>(mutex);
  interposed.wait();
  acquire<kWhich>(mutex);
  return true;
}

/// It returns whether the time is out (a bool, or an int before): what is awaited here takes none.
uint64_t wait_absl(void* condition, void* mutex, uint64_t timeout) {
  if (waits_for_parts<0>(mutex)) return 0;
  return reinterpret_cast<uint64_t (*)(void*, void*, uint64_t)>(waits[0].real)(condition, mutex,
                                                                               timeout);
}
void wait_nsync(void* condition, void* mutex) {
  if (waits_for_parts<1>(mutex)) return;
  reinterpret_cast<void (*)(void*, void*)>(waits[1].real)(condition, mutex);
}
void wait_standard(void* condition, std::unique_lock<std::mutex>* lock) {
  if (!interposed.waits()) {
    using Wait = void (*)(void*, std::unique_lock<std::mutex>*);
    return reinterpret_cast<Wait>(waits[2].real)(condition, lock);
  }
  lock->unlock();
  interposed.wait();
  lock->lock();
}

bool ends_with(const char* symbol, const char* end) {
  const size_t length = std::strlen(symbol), tail = std::strlen(end);
  return length > tail && std::strcmp(symbol + length - tail, end) == 0;
}

bool has_name(const Function& function, const char* symbol) {
  if (std::strncmp(symbol, function.prefix, std::strlen(function.prefix)) != 0) return false;
  for (const char* end : function.ends) {
    if (end != nullptr && ends_with(symbol, end)) return true;
  }
  return false;
}

Function* function_named(const char* symbol) {
  for (Kind& kind : kinds) {
    for (Function& each : kind.functions) {
      if (has_name(each, symbol)) return &each;
    }
  }
  for (Function& each : waits) {
    if (has_name(each, symbol)) return &each;
  }
  return nullptr;
}

/// The tables of a loaded library that say which functions it imports.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * relocations[2] = {};
  size_t counts[2] = {};
};

void write(void** slot, void* value) {
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page_size - 1));
  // It may be read-only once the library is loaded.
  if (mprotect(page, page_size, PROT_READ | PROT_WRITE) == 0) *slot = value;
}

int patch(dl_phdr_info* info, size_t, void* count) {
#if defined(__x86_64__)
  constexpr unsigned kCall = R_X86_64_JUMP_SLOT, kAddress = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  constexpr unsigned kCall = R_AARCH64_JUMP_SLOT, kAddress = R_AARCH64_GLOB_DAT;
#else
  constexpr unsigned kCall = ~0u, kAddress = ~0u;
#endif
  if (std::strstr(info->dlpi_name, "tensorflow") == nullptr) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return 0;
  Tables tables;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto* const address = reinterpret_cast<const char*>(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) {
      tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    } else if (dynamic->d_tag == DT_STRTAB) {
      tables.strings = address;
    } else if (dynamic->d_tag == DT_JMPREL) {
      tables.relocations[0] = reinterpret_cast<const ElfW(Rela)*>(address);
    } else if (dynamic->d_tag == DT_PLTRELSZ) {
      tables.counts[0] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
    } else if (dynamic->d_tag == DT_RELA) {
      tables.relocations[1] = reinterpret_cast<const ElfW(Rela)*>(address);
    } else if (dynamic->d_tag == DT_RELASZ) {
      tables.counts[1] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
    }
  }
  if (tables.symbols == nullptr || tables.strings == nullptr) return 0;
  for (int table = 0; table < 2; ++table) {
    for (size_t i = 0; i < tables.counts[table]; ++i) {
      const ElfW(Rela) & each = tables.relocations[table][i];
      const auto type = static_cast<unsigned>(ELF64_R_TYPE(each.r_info));
      if (type != kCall && type != kAddress) continue;
      const char* const name = tables.strings + tables.symbols[ELF64_R_SYM(each.r_info)].st_name;
      Function* const function = function_named(name);
      if (function == nullptr) continue;
      if (function->real == nullptr) {
        function->real = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
        if (function->real == nullptr) {
          void* const library = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY);
          function->real = reinterpret_cast<Pointer>(dlsym(library, name));
        }
      }
      if (function->real == nullptr) continue;
      write(reinterpret_cast<void**>(info->dlpi_addr + each.r_offset),
            reinterpret_cast<void*>(function->ours));
      ++*static_cast<int*>(count);
    }
  }
  return 0;
}

}  // namespace

std::string interpose(const Interposed& with) {
  interposed = with;
  static const int patched = [] {
    int count = 0;
    dl_iterate_phdr(patch, &count);
    return count;
  }();
  if (patched == 0) return "no calls of absl::Mutex or nsync_mu in TensorFlow's libraries";
  for (const Kind& kind : kinds) {
    const Function* lacking = nullptr;
    bool found = false;
    for (const Function& each : kind.functions) {
      if (each.real == nullptr) lacking = &each;
      found = found || each.real != nullptr;
    }
    // A release may have none of a kind, but not a part of it.
    if (found && lacking != nullptr) {
      return std::string("no ") + kind.name + " of the form " + lacking->ends[0];
    }
  }
  return "";
}

std::string lacking_waits() {
  const auto& [absl, nsync, standard] = waits;
  if (standard.real == nullptr) return "no std::condition_variable in TensorFlow's libraries";
  // TensorFlow's own condition variable is made of one of these, as its mutex is.
  if (absl.real == nullptr && nsync.real == nullptr) {
    return "no calls of absl::CondVar or nsync_cv in TensorFlow's libraries";
  }
  return "";
}

}  // namespace litmusfuzz::locks
