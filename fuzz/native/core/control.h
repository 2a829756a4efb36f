// An instance of a node with bodies: a conditional, a loop or a call.
//
// Any thread may call the methods, in any order that the edges allow. Each method
// changes the state under a lock and adds follow-up work to the caller's list.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "frame.h"

namespace litmusfuzz::executor {

class Control {
 public:
  virtual ~Control() = default;

  /// All dependencies of the node are done.
  virtual void begin(Tasks& tasks) = 0;
  /// One of `Node::arguments` is ready.
  virtual void argument(uint32_t place, Tensor value, Tasks& tasks) = 0;
  /// One result of a body in a frame inside is ready.
  virtual void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) = 0;
  /// All instances in a frame inside are done.
  virtual void over(const Frame& frame, Tasks& tasks) = 0;

  static std::unique_ptr<Control> make(const Program& program, Frame& frame, uint32_t node);

 protected:
  Control(const Program& program, Frame& frame, const Node& node);

  /// Opens a frame inside, with the arguments that are ready.
  std::unique_ptr<Frame> open(uint32_t which, uint32_t iteration, const std::vector<Tensor>& given,
                              Tasks& tasks);
  /// Returns a result, now or (`Node::late`) when all instances are done.
  void leave(uint32_t place, Tensor value, Tasks& tasks);
  /// Called when all instances inside are done.
  void finish(Tasks& tasks);

  const Program& program_;
  Frame& frame_;
  const Node& node_;
  std::mutex lock_;

 private:
  void deliver(uint32_t place, Tensor value, Tasks& tasks);
  void finish_if_all_left(Tasks& tasks);
  /// True if the node's own slot is ready with its results; for a call, with all instances.
  bool ready_with_results() const;

  std::vector<std::pair<uint32_t, Tensor>> held_;
  uint32_t left_;  // results that have not left
  bool over_ = false;
};

/// A conditional: the chosen body begins with the predicate. Arguments arrive, and
/// results leave, one by one.
class Branch final : public Control {
 public:
  Branch(const Program& program, Frame& frame, const Node& node);
  void begin(Tasks& tasks) override;
  void argument(uint32_t place, Tensor value, Tasks& tasks) override;
  void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) override;
  void over(const Frame& frame, Tasks& tasks) override;

 private:
  std::vector<Tensor> arguments_;  // empty until they arrive
  std::unique_ptr<Frame> taken_;
};

/// A function call. Its body begins with the call; arguments arrive, and results leave, one
/// by one.
class Call final : public Control {
 public:
  Call(const Program& program, Frame& frame, const Node& node);
  void begin(Tasks& tasks) override;
  void argument(uint32_t place, Tensor value, Tasks& tasks) override;
  void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) override;
  void over(const Frame& frame, Tasks& tasks) override;

 private:
  bool unused() const;  // mutants only: nothing takes one of its results

  std::vector<Tensor> arguments_;  // empty until they arrive
  std::unique_ptr<Frame> body_;
};

/// A loop. Each iteration is a frame of the condition and, if that is true, a frame of
/// the body. The first arguments are the carried values of iteration 0.
class Loop final : public Control {
 public:
  Loop(const Program& program, Frame& frame, const Node& node);
  void begin(Tasks& tasks) override;
  void argument(uint32_t place, Tensor value, Tasks& tasks) override;
  void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) override;
  void over(const Frame& frame, Tasks& tasks) override;

 private:
  struct Iteration {
    std::vector<Tensor> arguments;  // carried values, then captures
    std::unique_ptr<Frame> condition, body;
    bool tested = false, goes_on = false;
    bool condition_over = false, body_over = false;

    bool over() const { return tested && condition_over && (!goes_on || body_over); }
  };

  void arrive(Iteration& iteration, uint32_t place, Tensor value, Tasks& tasks);
  Iteration& following(uint32_t number);
  /// Opens all frames and returns all results that are possible now.
  void advance(Tasks& tasks);
  bool complete(const Iteration& iteration) const;
  /// Initial arguments of its body.
  std::vector<Tensor> arguments_of(uint32_t iteration) const;
  /// Value of an argument in a frame of an iteration.
  Tensor shown(const Frame& frame, uint32_t place, const Tensor& value) const;
  Tensor old_value(uint32_t iteration, uint32_t place, const Tensor& value) const;
  bool held_early(const Frame& frame, uint32_t place, Tensor& value);

  std::deque<Iteration> iterations_;
  std::vector<Tensor> taken_;
  size_t over_count_ = 0;  // length of the prefix of iterations that are over
  bool begun_ = false;
  std::vector<std::pair<uint32_t, Tensor>> early_;  // mutants only
};

}  // namespace litmusfuzz::executor
