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
void (*decide)(const Touch& touch) = nullptr;
struct sigaction before;
bool started = false;

Buffer* find(uintptr_t address) {
  const size_t there = count.load(std::memory_order_acquire);
  for (size_t i = 0; i < there; ++i) {
    if (buffers[i].contains(address)) return &buffers[i];
  }
  return nullptr;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    sigaction(signal, &before, nullptr);  // the instruction is repeated, and ends the process
    if (info->si_code <= 0) raise(signal);  // there is none: somebody has sent the signal
  } else {
    before.sa_handler(signal);
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

  static void handle(int signal, siginfo_t* info, void* given) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    Buffer* const buffer = info->si_code > 0 ? find(address) : nullptr;
    if (buffer == nullptr) return pass_on(signal, info, given);
    const int error = errno;
    const auto& context = *static_cast<const ucontext_t*>(given);
    if (entered == nullptr) {
      const std::lock_guard guard(lock);
      open_buffer(*buffer);
    } else {
      const uintptr_t page = address & ~(page_size() - 1);
      const bool writing = writes(context);
      entered->add(page, writing, registers(context));
      Touch touch{{}, (page - buffer->address) / page_size(), writing};
      {
        const std::lock_guard guard(lock);
        touch.owners = buffer->owners;
      }
      decide(touch);
    }
    errno = error;
  }

  /// Opens the pages of a window, and no others of closed buffers.
  static void turn_to(const Window& window) {
    const auto has = [](const auto& pages, const Window::Page& page) {
      return std::find(pages.begin(), pages.end(), page) != pages.end();
    };
    for (const Window::Page& each : opened) {
      if (!has(window.pages_, each)) protect(each.address, page_size(), PROT_NONE);
    }
    std::vector<Window::Page> now;
    for (const Window::Page& each : window.pages_) {
      if (!find(each.address)->closed) continue;
      if (!has(opened, each)) {
        protect(each.address, page_size(), each.writable ? PROT_READ | PROT_WRITE : PROT_READ);
      }
      now.push_back(each);
    }
    opened = std::move(now);
  }
};

void Window::add(uintptr_t address, bool writable, const Registers& registers) {
  const bool again = registers == last_;
  last_ = registers;
  const auto is_it = [&](const Page& each) { return each.address == address; };
  pages_.erase(std::remove_if(pages_.begin(), pages_.end(), is_it), pages_.end());
  pages_.push_back({address, writable});
  // An instruction that touches several pages needs them all, and has not got on until now.
  while (!again && pages_.size() > most_) pages_.pop_front();
}

void start(void (*touched)(const Touch& touch)) {
  decide = touched;
  struct sigaction ours, current;
  std::memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = Faults::handle;
  // On the other stack where a thread has one: the fault may be an overflow of the stack. While
  // touches decide, a thread has none (`enter`): handlers wait, several at a time.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, nullptr, &current);
  if (started && current.sa_flags & SA_SIGINFO && current.sa_sigaction == Faults::handle) return;
  before = current;
  sigaction(SIGSEGV, &ours, nullptr);
  started = true;
}

void stop() {
  leave();
  open();
  struct sigaction current;
  sigaction(SIGSEGV, nullptr, &current);
  // Whoever has set another handler meanwhile may pass faults on to ours: that goes on.
  if (!started || current.sa_sigaction != Faults::handle) return;
  sigaction(SIGSEGV, &before, nullptr);
  started = false;
}

void* allocate(size_t bytes) {
  const size_t size = (bytes + page_size() - 1) / page_size() * page_size();
  const std::lock_guard guard(lock);
  const size_t there = count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < there; ++i) {
    Buffer& each = buffers[i];
    if (each.used || each.size != size) continue;
    each.used = true;
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
    if (each.owners.empty() || each.closed) continue;
    protect(each.address, each.size, PROT_NONE);
    each.closed = true;
    ++closed;
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
