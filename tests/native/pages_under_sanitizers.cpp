// Pages under sanitizers: which touches are seen, whose, and that all else finds ordinary memory.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "control/pages.h"

namespace litmusfuzz::pages {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

std::vector<std::string> seen;
Window* current = nullptr;
void (*volatile whose)() = nullptr;  // says whose the memory is that a kernel has allocated

void tell() {
  if (void (*const now)() = whose) now();
}
void (*volatile meanwhile)() = nullptr;  // set by a kernel before it touches a page

/// Notes a touch; then the kernel goes on, perhaps after something else.
void note(const Touch& touch) {
  leave();
  std::string said = (touch.writes ? "write " : "read ") +
                     std::to_string(touch.is_each ? touch.offset : touch.page);
  for (const std::string& each : touch.owners) said += " " + each;
  seen.push_back(said);
  if (void (*const now)() = meanwhile) {
    meanwhile = nullptr;
    now();
  }
  if (current != nullptr) enter(current);
}

/// The touches of a kernel that goes through so many tensors.
std::vector<std::string> touches(size_t tensors, void (*kernel)()) {
  Window window(tensors);
  seen.clear();
  current = &window;
  enter(&window);
  kernel();
  leave();
  open();
  current = nullptr;
  return seen;
}

using Seen = std::vector<std::string>;
volatile char* x = nullptr;  // two pages
volatile char* y = nullptr;
volatile char* p = nullptr;  // two pages, of which each touch is seen
volatile char* q = nullptr;  // likewise

void read_and_write() {
  CHECK((touches(1, [] { x[0] = static_cast<char>(x[1] + 1); }) == Seen{"read 0 X", "write 0 X"}));
  CHECK((touches(1, [] {
           x[kPage] = 1;
           x[kPage + 1] = x[kPage];
         }) == Seen{"write 1 X"}));
}

/// A kernel that goes back to a page touches it once more; not if it goes through several tensors.
void windows() {
  const auto back = [] {
    x[0] = 1;
    y[0] = 1;
    x[1] = 1;
  };
  CHECK((touches(1, back) == Seen{"write 0 X", "write 0 Y", "write 0 X"}));
  CHECK((touches(2, back) == Seen{"write 0 X", "write 0 Y"}));
}

/// One instruction that needs two pages gets on, though the window has one.
void one_instruction() {
  touches(1, [] {
#if defined(__x86_64__)
    const void* from = const_cast<char*>(x);
    void* to = const_cast<char*>(y);
    size_t bytes = 2 * kPage;
    asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(bytes) : : "memory");
#else
    std::memcpy(const_cast<char*>(y), const_cast<char*>(x), 2 * kPage);
#endif
  });
  for (const char* each : {"read 0 X", "read 1 X", "write 0 Y", "write 1 Y"}) {
    CHECK(std::find(seen.begin(), seen.end(), each) != seen.end());
  }
}

std::mutex turns;
std::condition_variable turned;
int turn = 0;  // 1 is another thread's

void take_turn(int mine) {
  std::unique_lock guard(turns);
  turned.wait(guard, [&] { return turn == mine; });
}
void give_turn(int next) {
  const std::lock_guard guard(turns);
  turn = next;
  turned.notify_all();
}

/// What a kernel touches, if another one is at work in between, where `switch_over` says so.
Seen touches_beside(void (*kernel)(), void (*other)()) {
  // It has begun before: what begins in a handler may have the signal blocked.
  std::thread thread([other] {
    take_turn(1);
    Window* const first = current;
    Window window(1);
    current = &window;
    enter(&window);
    other();
    leave();
    current = first;
    give_turn(0);
  });
  const Seen found = touches(1, kernel);
  thread.join();
  return found;
}
void switch_over() {
  give_turn(1);
  take_turn(0);
}

/// What a kernel has touched is closed to another thread's, and open again when it goes on.
void switches() {
  const Seen found = touches_beside(
      [] {
        x[0] = 1;
        meanwhile = switch_over;
        x[kPage] = 1;  // the other one is at work before this
        x[kPage + 1] = 1;
      },
      [] {
        x[0] = 2;
        x[kPage] = 2;
      });
  CHECK((found == Seen{"write 0 X", "write 1 X", "write 0 X", "write 1 X"}));
  CHECK(x[0] == 2 && x[kPage] == 1);
}

#if defined(__x86_64__)
/// The processor stops behind what the kernel touches, however that was interrupted: also if
/// another one is at work in between, or nothing decides any more.
void interrupted_touches() {
  const Seen found = touches_beside(
      [] {
        p[0] = 1;
        meanwhile = switch_over;
        p[0] = static_cast<char>(p[1] + 1);
        p[2] = 1;
      },
      [] {
        p[0] = 2;
        p[1] = 2;
      });
  CHECK(
      (found == Seen{"write 0 P", "read 1 P", "write 0 P", "write 1 P", "write 0 P", "write 2 P"}));
  CHECK(p[0] == 3 && p[1] == 2);
  CHECK((touches(1, [] {
           static void (*const let_go)() = [] { current = nullptr; };
           meanwhile = [] { meanwhile = let_go; };
           const void* from = const_cast<char*>(p);
           void* to = const_cast<char*>(q);
           asm volatile("movsb" : "+S"(from), "+D"(to) : : "memory");
           q[1] = p[1];
         }) == Seen{"read 0 P", "write 0 Q"}));
  CHECK(q[0] == 3 && q[1] == 2);
}
#endif

/// A helper of the kernel's finds memory, and nothing is seen of what it does.
void helpers() {
  CHECK((touches(1, [] {
           std::thread helper([] { x[0] = 5; });
           helper.join();
           y[0] = 1;
         }) == Seen{"write 0 Y"}));
  CHECK(x[0] == 5);
}

/// The system, which refuses a closed page, finds an open one before other code: also while a
/// kernel waits.
void system_calls() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  static int out;
  out = ends[1];
  touches(1, [] {
    x[0] = 'a';
    meanwhile = [] {
      open();
      const auto all = static_cast<ssize_t>(2 * kPage);
      CHECK(write(out, const_cast<char*>(x), 2 * kPage) == all);
    };
    y[0] = 1;
  });
  CHECK(write(out, const_cast<char*>(x), 1) == 1);
  close(ends[0]);
  close(ends[1]);
}

#if defined(__x86_64__)
/// Every touch, again and again; an instruction that touches several pages gets on.
void every_touch() {
  CHECK((touches(1, [] {
           p[1] = 1;
           p[1] = p[0];
           x[0] = 1;
           q[0] = 2;
           x[1] = 1;
         }) == Seen{"write 1 P", "read 0 P", "write 1 P", "write 0 X", "write 0 Q"}));
  const std::string end = std::to_string(kPage - 4), next = std::to_string(kPage);
  CHECK((touches(1,
                 [] {
                   const auto across = reinterpret_cast<uintptr_t>(p) + kPage - 4;
                   asm volatile("movq $7, (%0)" : : "r"(across) : "memory");
                   asm volatile("movq (%0), %%rax" : : "r"(across) : "rax", "memory");
                 }) == Seen{"write " + end + " P", "write " + next + " P", "read " + end + " P",
                            "read " + next + " P"}));
  CHECK((touches(1, [] {
           p[1] = 4;
           const void* from = const_cast<char*>(p);
           void* to = const_cast<char*>(q);
           size_t bytes = 2;
           asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(bytes) : : "memory");
         }) == Seen{"write 1 P", "read 0 P", "write 0 Q", "read 1 P", "write 1 Q"}));
  CHECK(p[kPage - 4] == 7 && q[1] == 4);
}

#endif

/// What a kernel allocates is seen if it is an owner's by its first touch, and open if it is not.
void allocated() {
  static volatile char* made = nullptr;
  whose = [] { own(const_cast<char*>(made), "Z"); };
  const auto kernel = [] {
    made = static_cast<char*>(allocate(3 * kPage, false));
    made[0] = 1;
    made[2 * kPage] = made[0];
  };
  CHECK((touches(1, kernel) == Seen{"write 0 Z", "write 2 Z"}));
  CHECK(made[2 * kPage] == 1 && release(const_cast<char*>(made)));
  whose = nullptr;
  CHECK(touches(1, kernel).empty());
  CHECK(touches(1, [] { made[kPage] = 1; }).empty());
  CHECK(release(const_cast<char*>(made)));
}

void owners() {
  own(const_cast<char*>(x) + 8, "W");
  CHECK((touches(1, [] { x[0] = 1; }) == Seen{"write 0 W X"}));
  forget_owners();
  CHECK(touches(1, [] { x[0] = 1; }).empty());
  CHECK(!is_owned(const_cast<char*>(x)));
  own(const_cast<char*>(x), "X");
  own(const_cast<char*>(y), "Y");
  void* const small = allocate(1, false);
  own(small, "Z");
  CHECK(is_owned(small) && release(small) && !release(&seen));
  CHECK(allocate(kPage, false) == small && !is_owned(small));  // the same again
  CHECK(release(small));
}

char* theirs = nullptr;
std::atomic<int> passed{0}, trapped{0};

/// A fault elsewhere goes to the handler that was there before; and `stop` gives it back its place.
void other_faults() {
  CHECK(mprotect(theirs, kPage, PROT_NONE) == 0);
  touches(1, [] {
    *static_cast<volatile char*>(theirs) = 1;
    x[0] = 1;
  });
  CHECK(passed.load(std::memory_order_relaxed) == 1);
  CHECK((seen == Seen{"write 0 X"}));
#if defined(__x86_64__)
  asm volatile("int3");
  CHECK(trapped.load(std::memory_order_relaxed) == 1);
#endif
  stop();
  CHECK(mprotect(theirs, kPage, PROT_NONE) == 0);
  *static_cast<volatile char*>(theirs) = 2;
  CHECK(passed.load(std::memory_order_relaxed) == 2);
}

}  // namespace
}  // namespace litmusfuzz::pages

/// The handler may do what it likes: the code that it interrupts is the kernel's, which holds
/// nothing that the handler needs.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }

int main() {
  using namespace litmusfuzz::pages;
  theirs = static_cast<char*>(
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction before{};
  before.sa_sigaction = [](int, siginfo_t* info, void*) {
    CHECK(info->si_addr == theirs && mprotect(theirs, kPage, PROT_READ | PROT_WRITE) == 0);
    passed.fetch_add(1, std::memory_order_relaxed);
  };
  before.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGSEGV, &before, nullptr) == 0);
  struct sigaction of_trap{};
  of_trap.sa_handler = [](int) { trapped.fetch_add(1, std::memory_order_relaxed); };
  CHECK(sigaction(SIGTRAP, &of_trap, nullptr) == 0);
  start(note, tell);
  start(note, tell);  // ours is there already
  x = static_cast<char*>(allocate(kPage + 1, false));
  y = static_cast<char*>(allocate(2 * kPage, false));
  p = static_cast<char*>(allocate(2 * kPage, true));
  q = static_cast<char*>(allocate(2 * kPage, true));
  own(const_cast<char*>(x), "X");
  own(const_cast<char*>(y), "Y");
  own(const_cast<char*>(p), "P");
  own(const_cast<char*>(q), "Q");
  read_and_write();
  windows();
  one_instruction();
#if defined(__x86_64__)
  every_touch();
  interrupted_touches();
#endif
  allocated();
  switches();
  helpers();
  system_calls();
  owners();
  other_faults();
}
