// Memory of which it can be seen that a kernel touches it, page by page.
//
// A buffer begins at a page and ends with one. While a kernel computes whose touches decide, the
// buffers that have an owner are closed to it: its first touch of a page is a fault (SIGSEGV), and
// the handler asks whoever decides. They are open before anything but such a kernel is computed, so
// that system calls, which would fail on a closed page, and all other code find ordinary memory.
// Another thread that touches a closed page, such as a helper of the kernel's, opens the buffer and
// decides nothing.
//
// Of a buffer of which each touch decides, a page is open for one instruction: the handler has the
// processor stop behind it (the trap flag of x86-64), and the handler of that (SIGTRAP) closes the
// page again. An instruction that touches two pages has both open until then.
//
// What such a kernel allocates is closed, too, and may become an owner's before it is touched: at
// the first touch the handler asks whose it is. What is nobody's is opened.
//
// A fault anywhere else goes to the handler that was there before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace litmusfuzz::pages {

struct Faults;

/// Whether a handler can stop behind each touch on this processor.
#if defined(__x86_64__)
constexpr bool kSeesEachTouch = true;
#else
constexpr bool kSeesEachTouch = false;
#endif

/// Memory that is about to be touched: for the first time a page, or once more.
struct Touch {
  std::vector<std::string> owners;  // of its buffer, sorted
  size_t page;  // in its buffer
  size_t offset;  // of the first touched byte, in its buffer
  bool writes;
  bool is_each;  // of a buffer of which each touch decides
};

/// The pages that a kernel may touch: the last ones that it has touched.
///
/// It does not depend on the switches between kernels, so that a kernel's touches are the same
/// wherever it is interrupted.
class Window {
 public:
  /// An op that goes through so many tensors at once keeps one page of each.
  explicit Window(size_t tensors) : most_(tensors > 0 ? tensors : 1) {}

  struct Page {
    uintptr_t address;
    bool writable;
    bool operator==(const Page& other) const {
      return address == other.address && writable == other.writable;
    }
  };

 private:
  friend struct Faults;
  /// What an instruction depends on, its own address included; floating point aside.
  using Registers = std::array<uint64_t, 33>;

  void add(uintptr_t address, bool writable, const Registers& registers);

  size_t most_;
  std::deque<Page> pages_;  // the oldest first
  std::vector<Page> touched_;  // by the current instruction, and closed behind it
  Registers last_{};
};

/// Handles faults from now on, until `stop`; may be called again if another handler has been set
/// since. `touched` is called in the handler, in the thread that touches: it may wait there, with
/// all pages open (`leave`), and has to `enter` the window again, or not if nothing decides any
/// more. `tell` is called there before it, at the first touch of what a kernel has allocated: it
/// says, by `own`, whose that is now.
void start(void (*touched)(const Touch& touch), void (*tell)());
void stop();

/// Memory of at least `bytes`; null if there is no more. Each touch of it decides if that is
/// wanted, where `kSeesEachTouch`, else the first ones of its pages.
void* allocate(size_t bytes, bool each_touch);
/// Takes it back; false if the address is not of `allocate`.
bool release(void* address);

/// The buffer that has this address is `owner`'s, until it is released or all are forgotten.
void own(const void* address, const std::string& owner);
bool is_owned(const void* address);
void forget_owners();

/// From now on, the touches of this thread decide, except for those of the pages in the window. One
/// thread at a time.
void enter(Window* window);
/// Its touches decide no more. Everything may still be closed, which costs a switch between kernels
/// nothing: whoever goes on with other code has to `open` all.
void leave();
void open();

}  // namespace litmusfuzz::pages
