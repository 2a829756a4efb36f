// A controller with one defect: what an op has touched once stays open to it, until its next event
// of another kind.
#include <cstring>
#include <set>
#include <string>

#include "../../fuzz/native/control/hooks.h"

namespace {

int (*real)(void*, const LitmusFuzzEvent*) = nullptr;
std::set<std::string> touched;  // nodes that have touched something since their last other event

int stop(void* controller, const LitmusFuzzEvent* event) {
  if (std::strstr(event->point, " at element ") == nullptr) {
    touched.erase(event->node);
  } else if (!touched.insert(event->node).second) {
    return 0;
  }
  return real(controller, event);
}

}  // namespace

/// Changes a controller's functions; false if they are of another version.
extern "C" int stay_open(LitmusFuzzHooks* hooks) {
  if (hooks->version != LITMUSFUZZ_CONTROL_VERSION) return 0;
  real = hooks->stop;
  hooks->stop = stop;
  return 1;
}
