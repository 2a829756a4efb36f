#include "pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace litmusfuzz::pages {
namespace {

size_t page_size() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void protect(uintptr_t address, size_t size, int allowed) {
  // It fails where the kernel has no more maps to split: nothing of an execution would be true.
  if (mprotect(reinterpret_cast<void*>(address), size, allowed) != 0) std::abort();
}

struct Buffer {
  // Neither changes: a buffer that is released is kept, to be allocated again.
  uintptr_t address = 0;
  size_t size = 0;
  bool used = false;
  bool each_touch = false;
  bool closed = false;
  std::vector<std::string> owners;  // sorted

  bool contains(uintptr_t at) const { return at >= address && at - address < size; }
};

constexpr size_t kMost = 4096;
/// Fixed, so that a handler can tell without a lock whether a fault is ours. The partner of
/// `count`'s release is the acquire in `find`.
Buffer buffers[kMost];
std::atomic<size_t> count{0};
/// Guards all else of the buffers. Whoever holds it touches none of their memory.
std::mutex lock;
size_t closed = 0;  // number of buffers that are
/// Pages of closed buffers that are open all the same, to the window that was entered last.
std::vector<Window::Page> opened;

void close_buffer(Buffer& buffer) {
  if (buffer.closed) return;
  protect(buffer.address, buffer.size, PROT_NONE);
  buffer.closed = true;
  ++closed;
}

void open_buffer(Buffer& buffer) {
  if (!buffer.closed) return;
  protect(buffer.address, buffer.size, PROT_READ | PROT_WRITE);
  buffer.closed = false;
  --closed;
  const auto its = [&](const Window::Page& each) { return buffer.contains(each.address); };
  opened.erase(std::remove_if(opened.begin(), opened.end(), its), opened.end());
}

thread_local Window* entered = nullptr;
thread_local stack_t other_stack{};  // of a thread that has entered a window
/// Behind the next instruction of this thread, which has been granted its touches, comes a trap.
thread_local bool stepping = false;
void (*decide)(const Touch& touch) = nullptr;
void (*tell_owners)() = nullptr;

/// A signal that is ours while it is handled here.
struct Handled {
  int number;
  void (*handler)(int signal, siginfo_t* info, void* context);
  struct sigaction before{};
  bool started = false;

  void start();
  void stop();
  /// What is not ours goes to the handler before.
  void pass_on(siginfo_t* info, void* context);
};

Buffer* find(uintptr_t address) {
  const size_t there = count.load(std::memory_order_acquire);
  for (size_t i = 0; i < there; ++i) {
    if (buffers[i].contains(address)) return &buffers[i];
  }
  return nullptr;
}

void Handled::start() {
  struct sigaction ours, current;
  std::memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = handler;
  // On the other stack where a thread has one: the fault may be an overflow of the stack. While
  // touches decide, a thread has none (`enter`): handlers wait, several at a time.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(number, nullptr, &current);
  if (started && current.sa_flags & SA_SIGINFO && current.sa_sigaction == handler) return;
  before = current;
  sigaction(number, &ours, nullptr);
  started = true;
}

void Handled::stop() {
  struct sigaction current;
  sigaction(number, nullptr, &current);
  // Whoever has set another handler meanwhile may pass signals on to ours: that goes on.
  if (!started || current.sa_sigaction != handler) return;
  sigaction(number, &before, nullptr);
  started = false;
}

void Handled::pass_on(siginfo_t* info, void* context) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    sigaction(number, &before, nullptr);  // a fault comes again, and ends the process
    // Nothing comes again if somebody has sent the signal, or the instruction is over.
    if (info->si_code <= 0 || number == SIGTRAP) raise(number);
  } else {
    before.sa_handler(number);
  }
}

}  // namespace

struct Faults {
  static bool writes(const ucontext_t& context) {
#if defined(__x86_64__)
    return context.uc_mcontext.gregs[REG_ERR] & 2;
#elif defined(__aarch64__)
    const auto* each = reinterpret_cast<const _aarch64_ctx*>(context.uc_mcontext.__reserved);
    for (; each->magic != 0; each = reinterpret_cast<const _aarch64_ctx*>(
                                 reinterpret_cast<const char*>(each) + each->size)) {
      if (each->magic != ESR_MAGIC) continue;
      return reinterpret_cast<const esr_context*>(each)->esr >> 6 & 1;
    }
    return true;
#else
#error "no fault of this processor is known"
#endif
  }

  static Window::Registers registers(const ucontext_t& context) {
    Window::Registers found{};
#if defined(__x86_64__)
    for (int i = REG_R8; i <= REG_RIP; ++i) {
      found[static_cast<size_t>(i)] = static_cast<uint64_t>(context.uc_mcontext.gregs[i]);
    }
#elif defined(__aarch64__)
    std::copy(std::begin(context.uc_mcontext.regs), std::end(context.uc_mcontext.regs),
              found.begin());
    found[31] = context.uc_mcontext.sp;
    found[32] = context.uc_mcontext.pc;
#endif
    return found;
  }

  static void handle(int, siginfo_t* info, void* given) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    Buffer* const buffer = info->si_code > 0 ? find(address) : nullptr;
    if (buffer == nullptr) return faults.pass_on(info, given);
    const int error = errno;
    auto& context = *static_cast<ucontext_t*>(given);
    // Perhaps it has been granted another page before; it is the next one to stop behind.
    if (std::exchange(stepping, false)) trap_behind(context, false);
    if (entered == nullptr || !is_owned_by_now(*buffer)) {
      const std::lock_guard guard(lock);
      open_buffer(*buffer);
    } else {
      const uintptr_t page = address & ~(page_size() - 1);
      const bool writing = writes(context);
      if (buffer->each_touch) {
        entered->touched_.push_back({page, writing});
      } else {
        entered->add(page, writing, registers(context));
      }
      Touch touch{{},
                  (page - buffer->address) / page_size(),
                  address - buffer->address,
                  writing,
                  buffer->each_touch};
      {
        const std::lock_guard guard(lock);
        touch.owners = buffer->owners;
      }
      decide(touch);
    }
    if (entered != nullptr && !entered->touched_.empty()) {
      stepping = true;
      trap_behind(context, true);
    }
    errno = error;
  }

  /// Behind an instruction that had pages open for itself.
  static void handle_trap(int, siginfo_t* info, void* given) {
    if (!std::exchange(stepping, false)) return traps.pass_on(info, given);
    const int error = errno;
    trap_behind(*static_cast<ucontext_t*>(given), false);
    const std::lock_guard guard(lock);
    entered->touched_.clear();
    turn_to(*entered);
    errno = error;
  }

  /// Whether the processor stops behind the next instruction of what was interrupted.
  static void trap_behind(ucontext_t& context, bool stops) {
#if defined(__x86_64__)
    constexpr greg_t kTrap = 0x100;
    greg_t& flags = context.uc_mcontext.gregs[REG_EFL];
    flags = stops ? flags | kTrap : flags & ~kTrap;
#else
    if (stops) std::abort();  // nobody may have asked for it
    static_cast<void>(context);
#endif
  }

  static bool is_owned_by_now(const Buffer& buffer) {
    const auto is_owned = [&] {
      const std::lock_guard guard(lock);
      return !buffer.owners.empty();
    };
    if (is_owned()) return true;
    tell_owners();
    return is_owned();
  }

  static Handled faults, traps;

  /// What a kernel that decides has allocated: it has touched none of it.
  static void close_allocated(Buffer& buffer) {
    if (entered == nullptr) return;
    const auto its = [&](const Window::Page& each) { return buffer.contains(each.address); };
    auto& pages = entered->pages_;  // of the buffer before, perhaps
    pages.erase(std::remove_if(pages.begin(), pages.end(), its), pages.end());
    close_buffer(buffer);
  }

  /// Opens the pages of a window, and no others of closed buffers.
  static void turn_to(const Window& window) {
    const auto has = [](const auto& pages, const Window::Page& page) {
      return std::find(pages.begin(), pages.end(), page) != pages.end();
    };
    std::vector<Window::Page> all(window.pages_.begin(), window.pages_.end());
    all.insert(all.end(), window.touched_.begin(), window.touched_.end());
    for (const Window::Page& each : opened) {
      if (!has(all, each)) protect(each.address, page_size(), PROT_NONE);
    }
    std::vector<Window::Page> now;
    for (const Window::Page& each : all) {
      if (!find(each.address)->closed) continue;
      if (!has(opened, each)) {
        protect(each.address, page_size(), each.writable ? PROT_READ | PROT_WRITE : PROT_READ);
      }
      now.push_back(each);
    }
    opened = std::move(now);
  }
};

Handled Faults::faults{SIGSEGV, Faults::handle};
Handled Faults::traps{SIGTRAP, Faults::handle_trap};

void Window::add(uintptr_t address, bool writable, const Registers& registers) {
  const bool again = registers == last_;
  last_ = registers;
  const auto is_it = [&](const Page& each) { return each.address == address; };
  pages_.erase(std::remove_if(pages_.begin(), pages_.end(), is_it), pages_.end());
  pages_.push_back({address, writable});
  // An instruction that touches several pages needs them all, and has not got on until now.
  while (!again && pages_.size() > most_) pages_.pop_front();
}

void start(void (*touched)(const Touch& touch), void (*tell)()) {
  decide = touched;
  tell_owners = tell;
  Faults::faults.start();
  if (kSeesEachTouch) Faults::traps.start();
}

void stop() {
  leave();
  open();
  Faults::faults.stop();
  if (kSeesEachTouch) Faults::traps.stop();
}

void* allocate(size_t bytes, bool each_touch) {
  const size_t size = (bytes + page_size() - 1) / page_size() * page_size();
  const std::lock_guard guard(lock);
  const size_t there = count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < there; ++i) {
    Buffer& each = buffers[i];
    if (each.used || each.size != size) continue;
    each.used = true;
    each.each_touch = each_touch;
    Faults::close_allocated(each);
    return reinterpret_cast<void*>(each.address);
  }
  if (there == kMost) return nullptr;
  void* const made =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  Buffer& buffer = buffers[there];
  buffer.address = reinterpret_cast<uintptr_t>(made);
  buffer.size = size;
  buffer.used = true;
  buffer.each_touch = each_touch;
  Faults::close_allocated(buffer);
  count.store(there + 1, std::memory_order_release);
  return made;
}

bool release(void* address) {
  Buffer* const buffer = find(reinterpret_cast<uintptr_t>(address));
  if (buffer == nullptr) return false;
  const std::lock_guard guard(lock);
  open_buffer(*buffer);
  buffer->owners.clear();
  buffer->used = false;
  return true;
}

void own(const void* address, const std::string& owner) {
  Buffer* const buffer = find(reinterpret_cast<uintptr_t>(address));
  if (buffer == nullptr) return;
  const std::lock_guard guard(lock);
  const auto place = std::lower_bound(buffer->owners.begin(), buffer->owners.end(), owner);
  if (place == buffer->owners.end() || *place != owner) buffer->owners.insert(place, owner);
}

bool is_owned(const void* address) {
  const Buffer* const buffer = find(reinterpret_cast<uintptr_t>(address));
  const std::lock_guard guard(lock);
  return buffer != nullptr && !buffer->owners.empty();
}

void forget_owners() {
  const std::lock_guard guard(lock);
  const size_t there = count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < there; ++i) buffers[i].owners.clear();
}

void enter(Window* window) {
  // A handler that waits keeps its stack, and another one may need one meanwhile.
  if (entered == nullptr) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, &other_stack);
  }
  const std::lock_guard guard(lock);
  const size_t there = count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < there; ++i) {
    Buffer& each = buffers[i];
    if (!each.owners.empty()) close_buffer(each);
  }
  Faults::turn_to(*window);
  entered = window;
}

void leave() {
  if (std::exchange(entered, nullptr) != nullptr && !(other_stack.ss_flags & SS_DISABLE)) {
    sigaltstack(&other_stack, nullptr);
  }
}

void open() {
  const std::lock_guard guard(lock);
  for (size_t i = 0; closed > 0; ++i) open_buffer(buffers[i]);
}

}  // namespace litmusfuzz::pages
