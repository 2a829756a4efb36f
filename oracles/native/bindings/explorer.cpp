// Python bindings of the explorer: convert, release the GIL, translate errors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string_view>

#include "oracle.h"
#include "orders.h"

namespace nb = nanobind;
using namespace litmusfuzz::oracle;

namespace {

using Indices = std::vector<int32_t>;
using RawOp = std::tuple<std::string, bool, Indices, int32_t, std::tuple<int32_t, int32_t, int32_t>,
                         nb::object>;
using RawEvent = std::tuple<int32_t, int32_t, Indices, Indices, Indices, Indices, Indices,
                            std::vector<std::pair<int32_t, bool>>, int32_t>;
using RawToken = std::tuple<int32_t, int32_t, int32_t, Ints, Indices, Indices, Indices>;

Ints read_ints(nb::handle value);
nb::tuple to_tuple(const Ints& ints);

/// The function of a pure op that only Python computes. A result that is a text, not ints,
/// says that there is none: the caller knows why. None says that the op fails.
Function function_of(const nb::object& callable, int32_t node) {
  // The interpreter owns the reference: the last copy may go without the GIL.
  std::shared_ptr<PyObject> held(nb::object(callable).release().ptr(), [](PyObject* object) {
    nb::gil_scoped_acquire acquire;
    Py_DECREF(object);
  });
  return [held, node](const std::vector<Ints>& operands) {
    nb::gil_scoped_acquire acquire;
    nb::object given = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(operands.size())));
    if (!given.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < operands.size(); ++i) {
      PyTuple_SET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i),
                       to_tuple(operands[i]).release().ptr());
    }
    const nb::object result = nb::steal(PyObject_CallOneArg(held.get(), given.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    if (result.is_none()) throw OpFails{{node, 0}};
    if (!PyTuple_Check(result.ptr())) throw ValueTooLarge{node, 0};
    return read_ints(result);
  };
}

std::unique_ptr<Oracle> load(const std::vector<Ints>& variables,
                             const std::vector<std::pair<int32_t, std::vector<Ints>>>& queues,
                             size_t hidden, const std::vector<RawOp>& ops,
                             std::vector<RawEvent> events, std::vector<RawToken> tokens,
                             Indices observed, Indices ended, bool fifo, bool speculates) {
  auto program = std::make_unique<Program>();
  ValueTable& table = program->constants;
  for (const Ints& each : variables) {
    program->initial.push_back(table.intern(each));
    program->uninitialized |= each.empty();
  }
  program->variables = variables.size();
  program->queues = queues.size();
  program->capacity.resize(variables.size());
  for (const auto& [capacity, elements] : queues) {
    std::vector<Value> values;
    for (const Ints& each : elements) values.push_back(table.intern(each));
    program->initial.push_back(queue_value(false, values, table));
    program->capacity.push_back(capacity);
  }
  program->initial.resize(program->initial.size() + hidden, 0);
  for (const auto& [name, nesterov, rows, row_size, sizes, function] : ops) {
    const bool called = !function.is_none();
    Op op{.code = called ? OpCode::kCalled : op_code(name),
          .nesterov = nesterov,
          .rows = rows,
          .row_size = row_size};
    std::tie(op.n, op.k, op.m) = sizes;
    op.node = static_cast<int32_t>(program->ops.size());
    if (called) op.function = function_of(function, op.node);
    program->ops.push_back(std::move(op));
  }
  for (auto& [access, op, variables, resources, needs, after, operands, guards, part] : events) {
    program->checks |= static_cast<Access>(access) == Access::kCheck;
    program->events.push_back({static_cast<Access>(access), op, std::move(variables),
                               std::move(resources), std::move(needs), std::move(after),
                               std::move(operands), std::move(guards), part});
  }
  for (auto& [kind, op, event, value, inputs, waits, others] : tokens) {
    Token token{.kind = static_cast<TokenKind>(kind), .op = op, .event = event};
    if (token.kind == TokenKind::kConst) {
      token.value = program->constants.intern(value);
    } else if (!value.empty()) {
      token.first = static_cast<int32_t>(value[0]);
      token.count = static_cast<int32_t>(value[1]);
    }
    token.inputs = std::move(inputs);
    token.waits = std::move(waits);
    token.events = std::move(others);
    program->tokens.push_back(std::move(token));
  }
  program->observed = std::move(observed);
  program->ended = std::move(ended);
  program->fifo = fifo;
  program->speculates = speculates;
  return std::make_unique<Oracle>(std::move(program));
}

Ints read_ints(nb::handle value) {
  Ints ints;
  const Py_ssize_t size = PyTuple_GET_SIZE(value.ptr());
  ints.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    int overflow = 0;
    const long long each =
        PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(value.ptr(), i), &overflow);
    if (each == -1 && PyErr_Occurred()) throw nb::python_error();
    ints.push_back(overflow ? kMaxMagnitude : each);
  }
  return ints;
}

/// Reads the values of an `Outcome`: pairs of a name and a tuple of ints; for a
/// queue, a tuple of such tuples; None for a value not seen; False for an absent
/// value. Returns false if any value is something else: torn.
bool read_outcome(nb::tuple pairs, const Oracle& oracle, Outcome& out) {
  if (pairs.size() != oracle.names()) throw nb::value_error("another test's outcome");
  out.parts.reserve(oracle.names());
  for (nb::handle pair : pairs) {
    const nb::handle value = nb::borrow<nb::tuple>(pair)[1];
    Part part;
    if (value.is_none()) {
      part.kind = Part::Kind::kAnything;
    } else if (value.ptr() == Py_False) {
      part.kind = Part::Kind::kAbsent;
    } else if (!PyTuple_Check(value.ptr())) {
      return false;
    } else if (out.parts.size() < oracle.first_queue()) {
      part.ints = read_ints(value);
    } else {
      part.kind = Part::Kind::kQueue;
      for (nb::handle each : nb::borrow<nb::tuple>(value)) {
        if (!PyTuple_Check(each.ptr())) return false;
        part.elements.push_back(read_ints(each));
      }
    }
    out.parts.push_back(std::move(part));
  }
  return true;
}

nb::tuple to_tuple(const Ints& ints) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(ints.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < ints.size(); ++i) {
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(ints[i]));
  }
  return nb::cast<nb::tuple>(out);
}

/// Heeds Ctrl-C, and tells `progress`, if that is not None, how many states there are.
Heed heed(const nb::object& progress) {
  return [&progress](uint64_t states) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(states);
  };
}

Oracle::Judgement judge(const Oracle& oracle, nb::tuple pairs, int status, uint64_t states,
                        uint64_t bytes, uint64_t plain) {
  Outcome outcome{.status = static_cast<Status>(status)};
  if (!read_outcome(pairs, oracle, outcome)) return {Answer::kForbidden, 0, {}};
  const nb::object nothing = nb::none();
  nb::gil_scoped_release release;
  return oracle.judge(outcome, {states, bytes, plain, heed(nothing)});
}

/// Status, and pairs of name and value; absent values are left out.
nb::tuple show(const Outcome& outcome, nb::tuple names) {
  nb::list pairs;
  for (size_t i = 0; i < outcome.parts.size(); ++i) {
    const Part& part = outcome.parts[i];
    if (part.kind == Part::Kind::kValue) {
      pairs.append(nb::make_tuple(names[i], to_tuple(part.ints)));
    } else if (part.kind == Part::Kind::kQueue) {
      nb::list elements;
      for (const Ints& each : part.elements) elements.append(to_tuple(each));
      pairs.append(nb::make_tuple(names[i], nb::tuple(elements)));
    }
  }
  return nb::make_tuple(static_cast<int>(outcome.status), nb::tuple(pairs));
}

using RawGate = std::tuple<int32_t, bool, int32_t, int32_t, nb::bytes, nb::bytes, nb::bytes>;

std::string_view view(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t count(int32_t events, const nb::bytes& above, const std::vector<RawGate>& raw,
               uint64_t limit) {
  std::vector<Gate> gates;
  for (const auto& [event, takes, held, capacity, more, fewer, closed] : raw) {
    gates.push_back({event, takes, held, capacity, view(more), view(fewer), view(closed)});
  }
  return count_orders(events, view(above), gates, limit);
}

}  // namespace

NB_MODULE(_explorer, m) {
  m.doc() = "The explorer's core; see oracles.explorer.";
  // The two arguments are the op's number and the value; oracles.explorer adds
  // the op's name.
  static PyObject* too_large =
      PyErr_NewException("oracles._explorer.TooLarge", PyExc_ArithmeticError, nullptr);
  if (!too_large) throw nb::python_error();
  m.attr("TooLarge") = nb::borrow(too_large);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const ValueTooLarge& error) {
      PyErr_SetObject(too_large, nb::make_tuple(error.node, error.value).ptr());
    }
  });

  nb::class_<OutcomeSet>(m, "OutcomeSet")
      .def_prop_ro("states", &OutcomeSet::states)
      .def_prop_ro("complete", &OutcomeSet::complete)
      .def("__len__", &OutcomeSet::size)
      .def("outcome", [](const OutcomeSet& self, uint64_t number, nb::tuple names) {
        return show(self.outcome(number), names);
      });

  nb::class_<Oracle>(m, "Oracle")
      .def(
          "all",
          [](const Oracle& self, uint64_t states, uint64_t bytes, uint64_t plain,
             const nb::object& progress) {
            nb::gil_scoped_release release;
            return self.all({states, bytes, plain, heed(progress)});
          },
          nb::arg("states"), nb::arg("bytes"), nb::arg("plain"), nb::arg("progress") = nb::none())
      .def("witness", [](const Oracle& self, nb::tuple outcome, int status, uint64_t states,
                         uint64_t bytes, uint64_t plain) {
        const auto found = judge(self, outcome, status, states, bytes, plain);
        return nb::make_tuple(static_cast<int>(found.answer), found.states, found.witness);
      });

  m.def("load", &load);
  m.def("count_orders", &count);
}
