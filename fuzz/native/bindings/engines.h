// Engines for Python, and engines from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace litmusfuzz::bindings {

void bind_engines(nanobind::module_& m);

}  // namespace litmusfuzz::bindings
