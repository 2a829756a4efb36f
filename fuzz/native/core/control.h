// An instance of a node with bodies: a conditional or a loop.
//
// Its methods are called by any thread, in any order that the edges leave open.
// Each changes its state under a lock and puts what follows on the caller's list.
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

  /// All that the node waits for is there.
  virtual void begin(Tasks& tasks) = 0;
  /// One of `Node::arguments` is there.
  virtual void argument(uint32_t place, Tensor value, Tasks& tasks) = 0;
  /// A frame of it has one of its body's results.
  virtual void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) = 0;
  /// All instances in a frame of it are done.
  virtual void over(const Frame& frame, Tasks& tasks) = 0;

  static std::unique_ptr<Control> make(const Program& program, Frame& frame, uint32_t node);

 protected:
  Control(const Program& program, Frame& frame, const Node& node);

  /// A frame inside, with the arguments that are there.
  std::unique_ptr<Frame> open(uint32_t which, uint32_t iteration, const std::vector<Tensor>& given,
                              Tasks& tasks);
  /// A result leaves, now or (`Node::late`) when all is done.
  void leave(uint32_t place, Tensor value, Tasks& tasks);
  /// All instances inside are done.
  void finish(Tasks& tasks);

  const Program& program_;
  Frame& frame_;
  const Node& node_;
  std::mutex lock_;

 private:
  void deliver(uint32_t place, Tensor value, Tasks& tasks);
  void finish_if_all_left(Tasks& tasks);

  std::vector<std::pair<uint32_t, Tensor>> held_;
  uint32_t left_;  // results that have not left
  bool over_ = false;
};

/// One of two bodies, which begins with the predicate: arguments follow one by
/// one, and results leave one by one.
class Branch final : public Control {
 public:
  Branch(const Program& program, Frame& frame, const Node& node);
  void begin(Tasks& tasks) override;
  void argument(uint32_t place, Tensor value, Tasks& tasks) override;
  void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) override;
  void over(const Frame& frame, Tasks& tasks) override;

 private:
  std::vector<Tensor> arguments_;  // empty ones are not there yet
  std::unique_ptr<Frame> taken_;
};

/// Iterations, each a frame of the condition and, if that is true, one of the
/// body. The first arguments are the carried values, of iteration 0.
class Loop final : public Control {
 public:
  Loop(const Program& program, Frame& frame, const Node& node);
  void begin(Tasks& tasks) override;
  void argument(uint32_t place, Tensor value, Tasks& tasks) override;
  void result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) override;
  void over(const Frame& frame, Tasks& tasks) override;

 private:
  struct Iteration {
    std::vector<Tensor> arguments;  // carried values, then what is taken from outside
    std::unique_ptr<Frame> condition, body;
    bool tested = false, goes_on = false;
    bool condition_over = false, body_over = false;

    bool over() const { return tested && condition_over && (!goes_on || body_over); }
  };

  void arrive(Iteration& iteration, uint32_t place, Tensor value, Tasks& tasks);
  Iteration& following(uint32_t number);
  /// Opens all frames, and lets all results leave, that may do so now.
  void advance(Tasks& tasks);
  bool complete(const Iteration& iteration) const;
  /// What its body begins with.
  std::vector<Tensor> arguments_of(uint32_t iteration) const;
  /// What a frame of an iteration gets for an argument.
  Tensor shown(const Frame& frame, uint32_t place, const Tensor& value) const;
  Tensor old_value(uint32_t iteration, uint32_t place, const Tensor& value) const;
  bool held_early(const Frame& frame, uint32_t place, Tensor& value);

  std::deque<Iteration> iterations_;
  std::vector<Tensor> taken_;
  size_t over_count_ = 0;  // iterations that are over, and all before them
  bool begun_ = false;
  std::vector<std::pair<uint32_t, Tensor>> early_;  // mutants only
};

}  // namespace litmusfuzz::executor
