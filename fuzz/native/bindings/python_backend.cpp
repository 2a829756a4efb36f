#include "python_backend.h"

#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace litmusfuzz::bindings {
namespace {

PyObject* object_of(const Tensor& value) { return *value.as<PyObject*>(); }

Tensor tensor_of(const nb::object& value) { return Tensor::scalar(value.ptr()); }

/// The operands that are present, of at most three.
void add(const Operands& operands, std::vector<PyObject*>& arguments) {
  for (const Tensor* each : operands) {
    if (each) arguments.push_back(object_of(*each));
  }
}

}  // namespace

PythonBackend::PythonBackend(const nb::list& calls, nb::object helpers)
    : element_(helpers.attr("element")),
      stacked_(helpers.attr("stacked")),
      number_(helpers.attr("number")),
      moved_(helpers.attr("moved")),
      truth_(helpers.attr("truth")),
      read_(helpers.attr("read")) {
  for (nb::handle each : calls) {
    Call call{nb::borrow(each[0]), {}, nb::cast<std::vector<uint32_t>>(each[2])};
    for (nb::handle argument : each[1]) call.bound.push_back(nb::borrow(argument));
    calls_.push_back(std::move(call));
  }
}

PythonBackend::~PythonBackend() = default;

Tensor PythonBackend::hold(nb::object value) {
  made_.push_back(std::move(value));
  return tensor_of(made_.back());
}

Tensor PythonBackend::keep(nb::object value) {
  kept_.push_back(std::move(value));
  return tensor_of(kept_.back());
}

nb::object PythonBackend::call(const Call& call, Arguments& arguments) const {
  for (const nb::object& each : call.bound) arguments.push_back(each.ptr());
  PyObject* const result =
      PyObject_Vectorcall(call.function.ptr(), arguments.data(), arguments.size(), nullptr);
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

void PythonBackend::begin() {
  const nb::gil_scoped_acquire gil;
  made_.clear();
}

Tensor PythonBackend::compute(const Node& node, const Operands& operands) {
  const nb::gil_scoped_acquire gil;
  Arguments arguments;
  add(operands, arguments);
  return hold(call(calls_[node.call], arguments));
}

Tensor PythonBackend::gathered(const Node& node, const Tensor& contents) {
  const nb::gil_scoped_acquire gil;
  Arguments arguments{object_of(contents)};
  return hold(call(calls_[node.call], arguments));
}

void PythonBackend::apply_update(const Node& node, Tensor* contents, const Operands& operands) {
  const nb::gil_scoped_acquire gil;
  const size_t count = node.resources.size();
  Arguments arguments;
  for (size_t i = 0; i < count; ++i) arguments.push_back(object_of(contents[i]));
  add(operands, arguments);
  const nb::object results = call(calls_[node.call], arguments);
  for (size_t i = 0; i < count; ++i) contents[i] = hold(nb::borrow(results[i]));
}

ClusterResult PythonBackend::apply_cluster(const Node& node, std::span<const Tensor> snapshot,
                                           std::span<const Tensor* const> given) {
  const nb::gil_scoped_acquire gil;
  Arguments arguments;
  for (const Tensor& each : snapshot) arguments.push_back(object_of(each));
  for (const Tensor* each : given) arguments.push_back(object_of(*each));
  const Call& cluster = calls_[node.call];
  const nb::object results = call(cluster, arguments);
  ClusterResult result;
  size_t next = 0;
  for (; next < node.results; ++next) {
    result.outputs.push_back(hold(nb::borrow(results[next])));
  }
  for (size_t i = 0; i < node.written.size(); ++i) {
    result.finals.push_back(hold(nb::borrow(results[next++])));
  }
  for (const uint32_t place : cluster.flagged) {
    if (!nb::cast<bool>(truth_(results[next++]))) result.finals[place] = {};
  }
  return result;
}

Tensor PythonBackend::element(const Node&, const Tensor& many, uint32_t part) {
  const nb::gil_scoped_acquire gil;
  return hold(element_(nb::handle(object_of(many)), part));
}

Tensor PythonBackend::stacked(const Node&, std::span<const Tensor> elements) {
  const nb::gil_scoped_acquire gil;
  nb::list all;
  for (const Tensor& each : elements) all.append(nb::handle(object_of(each)));
  return hold(stacked_(all));
}

Tensor PythonBackend::number(const Node& node, int32_t value) {
  const nb::gil_scoped_acquire gil;
  return hold(number_(value, node.device));
}

Tensor PythonBackend::moved(const Node& node, const Tensor& value) {
  const nb::gil_scoped_acquire gil;
  return hold(moved_(nb::handle(object_of(value)), node.device));
}

bool PythonBackend::truth(const Tensor& value) {
  const nb::gil_scoped_acquire gil;
  return nb::cast<bool>(truth_(nb::handle(object_of(value))));
}

Tensor PythonBackend::read(const Tensor& value, const Type& type) {
  const nb::gil_scoped_acquire gil;
  const nb::object bytes = read_(nb::handle(object_of(value)));
  const nb::bytes seen = nb::cast<nb::bytes>(bytes);
  if (seen.size() != type.bytes()) throw nb::value_error("a value of another size");
  return Tensor::copy_of(seen.c_str(), seen.size());
}

void bind_backend(nb::module_& m) {
  nb::class_<PythonBackend, executor::Backend>(m, "PythonBackend")
      .def(nb::init<const nb::list&, nb::object>());
}

}  // namespace litmusfuzz::bindings
