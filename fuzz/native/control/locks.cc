#include "locks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace litmusfuzz::locks {
namespace {

using Call = void (*)(void*);

Interposed interposed;

void lock(void* mutex);
void lock_shared(void* mutex);
void unlock(void* mutex);
void unlock_shared(void* mutex);

/// A function of absl's Mutex: its mangled name is `_ZN4absl`, a namespace that names the release,
/// `5Mutex`, then one of these ends. The second is that of releases before 2025.
struct Function {
  const char* ends[2];
  Call ours;
  Call real = nullptr;
};
Function functions[] = {
    {{"5Mutex4lockEv", "5Mutex4LockEv"}, lock},
    {{"5Mutex11lock_sharedEv", "5Mutex10ReaderLockEv"}, lock_shared},
    {{"5Mutex6unlockEv", "5Mutex6UnlockEv"}, unlock},
    {{"5Mutex13unlock_sharedEv", "5Mutex12ReaderUnlockEv"}, unlock_shared},
};

void lock(void* mutex) {
  if (!interposed.lock(mutex, false)) functions[0].real(mutex);
}
void lock_shared(void* mutex) {
  if (!interposed.lock(mutex, true)) functions[1].real(mutex);
}
void unlock(void* mutex) {
  functions[2].real(mutex);
  interposed.unlocked(mutex, false);
}
void unlock_shared(void* mutex) {
  functions[3].real(mutex);
  interposed.unlocked(mutex, true);
}

Function* function_named(const char* symbol) {
  static const char prefix[] = "_ZN4absl";
  if (std::strncmp(symbol, prefix, sizeof prefix - 1) != 0) return nullptr;
  const size_t length = std::strlen(symbol);
  for (Function& each : functions) {
    for (const char* end : each.ends) {
      const size_t tail = std::strlen(end);
      if (length > tail && std::strcmp(symbol + length - tail, end) == 0) return &each;
    }
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
        function->real = reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name));
        if (function->real == nullptr) {
          void* const library = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY);
          function->real = reinterpret_cast<Call>(dlsym(library, name));
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
  for (const Function& each : functions) {
    if (each.real == nullptr) return std::string("no absl::Mutex of the form ") + each.ends[0];
  }
  return patched > 0 ? "" : "no calls of absl::Mutex in TensorFlow's libraries";
}

void acquire(void* mutex, bool shared) { functions[shared ? 1 : 0].real(mutex); }

}  // namespace litmusfuzz::locks
