// The controller for Python; see fuzz.executors.tensorflow.control.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "control/controller.h"
#include "control/engine_driver.h"
#include "control/loop.h"
#include "controlled.h"
#include "exhaustive.h"
#include "schedulers/table.h"

namespace nb = nanobind;

namespace {

using litmusfuzz::control::Chosen;
using litmusfuzz::control::Controller;
using litmusfuzz::control::EngineDriver;
using litmusfuzz::control::Loop;
using litmusfuzz::control::Seen;
using litmusfuzz::control::Standing;
using litmusfuzz::executor::Choice;
using litmusfuzz::executor::Exhaustive;
using litmusfuzz::executor::Forced;
using litmusfuzz::executor::make_scheduler;
using litmusfuzz::executor::Recorder;
using litmusfuzz::executor::Replay;
using litmusfuzz::executor::Scheduler;
using RawChoice = std::tuple<uint32_t, uint32_t, uint64_t>;

std::vector<uint64_t> numbers(const std::vector<Chosen>& chosen) {
  std::vector<uint64_t> ids;
  for (const Chosen& each : chosen) ids.push_back(each.id);
  return ids;
}

}  // namespace

NB_MODULE(_control, m) {
  m.doc() = "The controller of another runtime; see fuzz.executors.tensorflow.control.";
  nb::enum_<Standing>(m, "Standing")
      .value("OVER", Standing::kOver)
      .value("BLOCKED", Standing::kBlocked)
      .value("ENDED", Standing::kEnded);
  nb::class_<Scheduler>(m, "Scheduler");
  nb::class_<Exhaustive, Scheduler>(m, "Exhaustive")
      .def(nb::init<std::optional<uint32_t>>(), nb::arg("preemptions") = nb::none())
      .def("next", &Exhaustive::next)
      .def_prop_ro("cut", &Exhaustive::cut)
      .def_prop_ro("preemptions", &Exhaustive::preemptions);
  nb::class_<Forced, Scheduler>(m, "Forced")
      .def(nb::init<std::vector<uint64_t>>())
      .def_prop_ro("made", &Forced::made);
  nb::class_<Recorder, Scheduler>(m, "Recorder")
      .def(nb::init<Scheduler&>(), nb::keep_alive<1, 2>())
      .def_prop_ro("choices", [](const Recorder& self) {
        std::vector<RawChoice> choices;
        for (const Choice& each : self.choices()) {
          choices.emplace_back(each.index, each.count, each.digest);
        }
        return choices;
      });
  nb::class_<Replay, Scheduler>(m, "Replay")
      .def("__init__",
           [](Replay* self, const std::vector<RawChoice>& raw) {
             std::vector<Choice> choices;
             for (const auto& [index, count, digest] : raw) {
               choices.push_back({index, count, digest});
             }
             new (self) Replay(std::move(choices));
           })
      .def_prop_ro("made", &Replay::made);
  nb::class_<Controller>(m, "Controller")
      .def(nb::init<>())
      .def_prop_ro("hooks",
                   [](const Controller& self) { return reinterpret_cast<uintptr_t>(self.hooks()); })
      .def("set_execution", &Controller::set_execution)
      .def("clear_execution", [](Controller& self) { self.set_execution({}); })
      .def("set_inside", &Controller::set_inside, nb::arg("inside"), nb::arg("threads") = 0)
      .def("watch", &Controller::watch)
      .def("run", [](Controller& self, Scheduler& scheduler) { return self.run(scheduler); })
      .def("begin", &Controller::begin)
      .def("proceed_when_begun", &Controller::proceed_when_begun)
      .def("expect", &Controller::expect)
      .def("wait_for", &Controller::wait_for, nb::call_guard<nb::gil_scoped_release>())
      .def("returned", &Controller::returned)
      .def_prop_ro("ended", &Controller::ended)
      .def_prop_ro("failed", &Controller::failed)
      .def_prop_ro("abandoned", &Controller::abandoned)
      .def("proceed", &Controller::proceed, nb::arg("stop"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("end", &Controller::end, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("chosen", [](const Controller& self) { return numbers(self.chosen()); })
      .def_prop_ro("left_at", &Controller::left_at)
      .def("name", &Controller::name)
      .def("number", &Controller::number)
      .def("touched", &Controller::touched)
      .def("reads_only", &Controller::reads_only);
  nb::class_<Loop>(m, "Loop")
      .def(
          "__init__",
          [](Loop* self, Controller& controller, uintptr_t program, uint32_t executors) {
            new (self)
                Loop(controller, reinterpret_cast<const LitmusFuzzProgram*>(program), executors);
          },
          nb::keep_alive<1, 2>())
      .def("run", &Loop::run, nb::call_guard<nb::gil_scoped_release>())
      .def("explore", &Loop::explore, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("complete", &Loop::complete)
      .def_prop_ro("begun", &Loop::begun)
      .def_prop_ro("seen",
                   [](const Loop& self) {
                     std::vector<uint64_t> counts;
                     for (const Seen& each : self.seen()) counts.push_back(each.executions);
                     return counts;
                   })
      .def("first",
           [](const Loop& self, size_t outcome) { return numbers(self.seen().at(outcome).first); })
      .def("forget", &Loop::forget);
  nb::class_<EngineDriver>(m, "EngineDriver")
      .def(
          "__init__",
          [](EngineDriver* self, uintptr_t engine, uint32_t threads, uint32_t intra_op_threads) {
            new (self) EngineDriver(*reinterpret_cast<litmusfuzz::Engine*>(engine), threads,
                                    intra_op_threads);
          },
          nb::arg("engine"), nb::arg("threads"), nb::arg("intra_op_threads") = 1)
      .def_prop_ro(
          "hooks",
          [](const EngineDriver& self) { return reinterpret_cast<uintptr_t>(self.hooks()); })
      .def_prop_ro("fault", &EngineDriver::fault)
      .def_prop_ro("most", &EngineDriver::most)
      .def_prop_ro("closures", &EngineDriver::closures)
      .def_prop_ro("by_caller", &EngineDriver::by_caller)
      .def_prop_ro("shared", &EngineDriver::shared);
  m.def("scheduler", [](const std::string& name, uint32_t depth, Controller& controller,
                        uint64_t seed) { return make_scheduler(name, depth, controller, seed); });
}
