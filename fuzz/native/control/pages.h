// Memory of which it can be seen that a kernel touches it, page by page.
//
// A buffer begins at a page and ends with one. While a kernel computes whose touches decide, the
// buffers that have an owner are closed to it: its first touch of a page is a fault (SIGSEGV), and
// the handler asks whoever decides. They are open before anything but such a kernel is computed, so
// that system calls, which would fail on a closed page, and all other code find ordinary memory.
// Another thread that touches a closed page, such as a helper of the kernel's, opens the buffer and
// decides nothing.
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

/// A page that is about to be touched for the first time.
struct Touch {
  std::vector<std::string> owners;  // of its buffer, sorted
  size_t page;  // in its buffer
  bool writes;
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
  Registers last_{};
};

/// Handles faults from now on, until `stop`; may be called again if another handler has been set
/// since. `touched` is called in the handler, in the thread that touches: it may wait there, with
/// all pages open (`leave`), and has to `enter` the window again, or not if nothing decides any
/// more.
void start(void (*touched)(const Touch& touch));
void stop();

/// Memory of at least `bytes`; null if there is no more.
void* allocate(size_t bytes);
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
