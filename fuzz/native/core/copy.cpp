#include "copy.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "control.h"
#include "kernels.h"

namespace litmusfuzz::executor {
namespace {

Operands operands_of(const Frame& frame, const Node& node) {
  Operands operands{};
  for (size_t i = 0; i < node.inputs.size(); ++i) operands[i] = &frame.slots[node.inputs[i]];
  return operands;
}

/// Locks several variables in the order of their addresses, to avoid deadlock.
class Locks {
 public:
  Locks(std::vector<Cell>& cells, std::vector<uint32_t> resources)
      : cells_(cells), resources_(std::move(resources)) {
    std::sort(resources_.begin(), resources_.end());
    for (const uint32_t each : resources_) cells_[each].lock.lock();
  }
  ~Locks() {
    for (const uint32_t each : resources_) cells_[each].lock.unlock();
  }
  Locks(const Locks&) = delete;

 private:
  std::vector<Cell>& cells_;
  std::vector<uint32_t> resources_;
};

Tensor computed(const Frame& frame, const Node& node) {
  if (node.op == Op::kIdentity) return frame.slots[node.inputs[0]];
  const Operands operands = operands_of(frame, node);
  return node.backend ? node.backend->compute(node, operands) : compute(node, operands);
}

Tensor rows_of(const Node& node, const Tensor& contents) {
  return node.backend ? node.backend->gathered(node, contents) : gathered(node, contents);
}

void updated(const Frame& frame, const Node& node, Tensor* contents, bool in_place = false) {
  const Operands operands = operands_of(frame, node);
  if (node.backend) return node.backend->apply_update(node, contents, operands);
  apply_update(node, contents, operands, in_place);
}

/// Two backends exchange values in the core's representation.
Tensor received(const Node& node, const Tensor& value) {
  if (node.source == node.backend) {
    return node.backend ? node.backend->moved(node, value) : value;
  }
  const Tensor bytes = node.source ? node.source->read(value, node.type) : value;
  return node.backend ? node.backend->entered(bytes) : bytes;
}

}  // namespace

Copy::Copy(const Program& program, EventRunner& runner, uint32_t number)
    : program_(program),
      runner_(runner),
      number_(number),
      cells_(program.resources.size()),
      runs_before_(new std::atomic<uint32_t>[program.runs.size()]) {
  for (size_t i = 0; i < cells_.size(); ++i) {
    for (const Tensor& each : program.resources[i].initial) {
      cells_[i].initial.push_back(Tensor::copy_of(each.bytes(), each.size_bytes()));
    }
  }
  for (uint32_t r = 0; r < program.runs.size(); ++r) {
    const Run& run = program.runs[r];
    roots_.push_back(std::make_unique<Frame>(*this, program, run.body, r, run.first_event));
  }
  if (program.broken(Defect::kStoreBuffers)) stores_ = std::make_unique<StoreBuffers>();
  reset();
}

/// A value that cells may change in place, as some mutants do.
Tensor Copy::owned(const Tensor& value) const {
  const bool changes =
      program_.broken(Defect::kTornWrite) || program_.broken(Defect::kInPlaceUpdate);
  return changes ? Tensor::copy_of(value.bytes(), value.size_bytes()) : value;
}

namespace {

/// Empties sum and count of an accumulator.
void clear_sum(Cell& cell, const Resource& resource) {
  const size_t bytes = resource.type.bytes();
  cell.value = Tensor::of_size(bytes);
  std::memset(cell.value.bytes(), 0, bytes);
  cell.count = 0;
}

/// Gradients that a take from an accumulator requires.
int32_t required_by(const Frame& frame, const Node& node) {
  return *frame.slots[node.inputs[0]].as<int32_t>();
}

}  // namespace

void Copy::reset() {
  for (size_t i = 0; i < cells_.size(); ++i) {
    const Resource::Sort sort = program_.resources[i].sort;
    Cell& cell = cells_[i];
    if (sort == Resource::Sort::kVariable) {
      cell.value = cell.initial.empty() ? Tensor() : owned(cell.initial[0]);
    }
    if (kMutants) {
      cell.cached = {};
      keep_buffer(cell, false);
    }
    if (sort == Resource::Sort::kAccumulator) {
      clear_sum(cell, program_.resources[i]);
      cell.step = 0;
      cell.line.clear();
    }
    if (sort == Resource::Sort::kQueue) {
      cell.elements.assign(cell.initial.begin(), cell.initial.end());
    }
    cell.closed = cell.held = false;
    cell.waiting.clear();
  }
  for (uint32_t r = 0; r < program_.runs.size(); ++r) {
    roots_[r]->reset();
    const size_t earlier = program_.runs[r].after.size() * program_.processes;
    runs_before_[r].store(
        static_cast<uint32_t>(program_.broken(Defect::kOneRunWaitedFor) && earlier ? 1 : earlier),
        std::memory_order_relaxed);
  }
  over_.assign(program_.runs.size(), false);
  failed_.store(false, std::memory_order_relaxed);
}

Status Copy::status() const {
  if (failed()) return Status::kFailed;
  const bool all = std::all_of(over_.begin(), over_.end(), [](uint8_t each) { return each; });
  return all ? Status::kCompleted : Status::kBlocked;
}

// --- the flow of values ------------------------------------------------------------

void Copy::start() {
  Tasks tasks;
  for (uint32_t r = 0; r < program_.runs.size(); ++r) {
    if (program_.runs[r].after.empty()) tasks.push({Task::Sort::kStart, roots_[r].get()});
  }
  work_off(tasks);
}

void Copy::work_off(Tasks& tasks) {
  while (!tasks.empty()) {
    Task task = tasks.pop();
    switch (task.sort) {
      case Task::Sort::kStart: start_frame(*task.frame, tasks); break;
      case Task::Sort::kArrive: arrive(*task.frame, task.slot, std::move(task.value), tasks); break;
      case Task::Sort::kFinish: finish_node(*task.frame, tasks); break;
    }
  }
}

void Copy::start_frame(Frame& frame, Tasks& tasks) {
  if (program_.broken(Defect::kEarlySnapshot)) {
    for (const Node& node : frame.body.nodes) {
      if (node.kind == Kind::kCluster) take_snapshot(frame, node);
    }
  }
  for (const uint32_t number : frame.body.at_once) node_ready(frame, number, tasks);
  finish_node(frame, tasks);
}

void Copy::arrive(Frame& frame, uint32_t number, Tensor&& value, Tasks& tasks) {
  const Slot& slot = frame.body.slots[number];
  if (value) frame.slots[number] = std::move(value);
  for (const uint32_t place : slot.results) {
    frame.around->result(frame, place, frame.slots[number], tasks);
  }
  for (const Edge& edge : slot.edges) {
    if (edge.argument != Edge::kWaits) {
      Control& control = *frame.controls[frame.node(edge.node).state];
      control.argument(static_cast<uint32_t>(edge.argument), frame.slots[number], tasks);
    } else if (edge.alone ||
               // Its partner is itself, in another thread: see `Frame::pending`.
               frame.pending[edge.node].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (program_.broken(Defect::kRelaxedAtomics) && edge.alone &&
          frame.node(edge.node).kind == Kind::kRead) {
        perform({&frame, edge.node, 0});  // at once, to keep the path short
      } else if (edge.event) {
        runner_.ready({&frame, edge.node, 0});
      } else {
        node_ready(frame, edge.node, tasks);
      }
    }
  }
}

void Copy::node_ready(Frame& frame, uint32_t number, Tasks& tasks) {
  const Node& node = frame.node(number);
  switch (node.kind) {
    case Kind::kPure: {
      if (node.op == Op::kNoOp) return complete_later(frame, node, {}, tasks);
      if (node.op == Op::kConst) return complete_later(frame, node, Tensor(node.constant), tasks);
      return complete_later(frame, node, computed(frame, node), tasks);
    }
    case Kind::kCluster: {
      if (!program_.broken(Defect::kEarlySnapshot)) {
        frame.states[node.state].several.clear();
        frame.states[node.state].left.store(0, std::memory_order_relaxed);
        if (!node.resources.empty()) return runner_.ready({&frame, number, Node::kSnapshot});
      }
      return end_snapshot({&frame, number, Node::kSnapshot}, tasks);
    }
    case Kind::kRecv: return runner_.transfer({&frame, number, 0});
    case Kind::kSend:
      runner_.send(frame, node, frame.slots[node.inputs[0]]);
      return complete_later(frame, node, Tensor(frame.slots[node.inputs[0]]), tasks);
    case Kind::kIf:
    case Kind::kCall:
    case Kind::kWhile: return frame.controls[node.state]->begin(tasks);
    case Kind::kSplitUpdate: {
      const uint32_t reads = node.variables();
      frame.states[node.state].left.store(reads, std::memory_order_relaxed);
      for (uint32_t step = 0; step < reads; ++step) runner_.ready({&frame, number, step});
      return;
    }
    default: runner_.ready({&frame, number, 0});
  }
}

void Copy::complete(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks) {
  arrive(frame, node.slot, std::move(value), tasks);
  if (node.last) finish_node(frame, tasks);
}

void Copy::complete_later(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks) {
  if (node.last) tasks.push({Task::Sort::kFinish, &frame});
  tasks.push({Task::Sort::kArrive, &frame, node.slot, std::move(value)});
}

void Copy::finish_node(Frame& frame, Tasks& tasks) {
  if (kMutants) drain();
  // Its partner is itself: the thread that counts to zero has seen the whole frame.
  if (frame.unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (frame.around) {
    frame.around->over(frame, tasks);
  } else {
    end_run(frame.run, tasks);
  }
}

void Copy::end_run(uint32_t run, Tasks& tasks) {
  over_[run] = true;
  if (program_.processes > 1) runner_.ended(*this, run);
  start_later_runs(run, tasks);
}

void Copy::start_later_runs(uint32_t run, Tasks& tasks) {
  for (const uint32_t later : program_.runs[run].before) {
    // Its partner is itself: a run sees all effects of the runs before it.
    if (runs_before_[later].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      tasks.push({Task::Sort::kStart, roots_[later].get()});
    }
  }
}

void Copy::arrived(uint32_t run, uint32_t slot, Tensor value) {
  Tasks tasks;
  arrive(*roots_[run], slot, std::move(value), tasks);
  work_off(tasks);
}

void Copy::ended_elsewhere(uint32_t run) {
  Tasks tasks;
  start_later_runs(run, tasks);
  work_off(tasks);
}

// --- events ------------------------------------------------------------------------

bool Copy::possible(const Event& event) const {
  const Node& node = event.frame->node(event.node);
  if (node.resources.empty()) return true;
  const Cell& cell = cells_[node.resources[0]];
  switch (node.kind) {
    case Kind::kAcquire: return !cell.held || program_.broken(Defect::kTwoHolders);
    case Kind::kEnqueue:  // fails on a closed queue
      return cell.closed || cell.elements.size() < program_.resources[node.resources[0]].capacity +
                                                       program_.broken(Defect::kOverCapacity);
    case Kind::kDequeue: return cell.closed || !cell.elements.empty();
    case Kind::kTakeSum: {
      if (event.step == Node::kJoin) return true;
      int64_t required = required_by(*event.frame, node);
      if (program_.broken(Defect::kTooFewGradients)) required = 1;
      const bool first = cell.line.front() == std::pair(&std::as_const(*event.frame), event.node);
      return first && cell.count >= required;
    }
    default: return true;
  }
}

void Copy::perform(Event event) {
  if (failed()) return;
  Tasks tasks;
  const Kind kind = event.frame->node(event.node).kind;
  if (kMutants && kind != Kind::kRead && kind != Kind::kWrite) drain();
  switch (kind) {
    case Kind::kRead: read(event, tasks); break;
    case Kind::kState: state(event, tasks); break;
    case Kind::kWrite: write(event, tasks); break;
    case Kind::kUpdate: update(event, tasks); break;
    case Kind::kSplitUpdate: split_update(event, tasks); break;
    case Kind::kCluster: cluster(event, tasks); break;
    case Kind::kEnqueue: enqueue(event, tasks); break;
    case Kind::kDequeue: dequeue(event, tasks); break;
    case Kind::kSize: size(event, tasks); break;
    case Kind::kClose: close(event, tasks); break;
    case Kind::kApply: apply(event, tasks); break;
    case Kind::kTakeSum: take_sum(event, tasks); break;
    case Kind::kCount: count(event, tasks); break;
    case Kind::kSetStep: set_step(event, tasks); break;
    case Kind::kAcquire: acquire(event, tasks); break;
    case Kind::kRelease: release(event, tasks); break;
    case Kind::kRecv: receive(event, tasks); break;
    default: break;  // the others have no events
  }
  work_off(tasks);
}

void Copy::read(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Tensor seen;
  if (!kMutants || !read_wrongly(node, seen)) {
    Cell& cell = cells_[event.frame->touched(node, 0)[0]];
    const std::lock_guard guard(cell.lock);
    seen = cell.value;  // shared: a writer makes a new buffer
  }
  if (!seen && program_.broken(Defect::kZeroForNoValue)) {
    const size_t bytes = program_.resources[node.resources[0]].type.bytes();
    seen = Tensor::of_size(bytes);
    std::memset(seen.bytes(), 0, bytes);
  }
  if (!seen) return failed_.store(true, std::memory_order_relaxed);
  if (node.gathers_rows) seen = rows_of(node, seen);
  complete(*event.frame, node, std::move(seen), tasks);
}

void Copy::state(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  bool has_value = program_.broken(Defect::kAlwaysInitialized);
  {
    const std::lock_guard guard(cell.lock);
    has_value |= static_cast<bool>(cell.value);
  }
  Tensor seen = Tensor::scalar(static_cast<uint8_t>(has_value));
  if (node.backend) seen = node.backend->entered(seen);
  complete(*event.frame, node, std::move(seen), tasks);
}

void Copy::receive(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  complete(frame, node, received(node, frame.slots[node.inputs[0]]), tasks);
}

void Copy::write(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Tensor value = event.frame->slots[node.inputs[0]];
  if (!kMutants || !write_wrongly(node, value)) {
    Cell& cell = cells_[event.frame->touched(node, 0)[0]];
    const std::lock_guard guard(cell.lock);
    std::swap(cell.value, value);
    if (kMutants) keep_buffer(cell, false);
  }
  complete(*event.frame, node, {}, tasks);
}

void Copy::update(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  const std::span<const uint32_t> touched = event.frame->touched(node, 0);
  Cell& first = cells_[touched.front()];
  Cell& last = cells_[touched.back()];
  // One order of locks for all updates of several variables.
  std::unique_lock lower(std::min(&first, &last)->lock);
  std::unique_lock<SpinLock> upper;
  if (&first != &last) upper = std::unique_lock(std::max(&first, &last)->lock);
  if (!first.value || !last.value) return failed_.store(true, std::memory_order_relaxed);
  std::array<Tensor, 2> contents{std::move(first.value)};
  if (&first != &last) contents[1] = std::move(last.value);
  updated(*event.frame, node, contents.data(), program_.broken(Defect::kInPlaceUpdate));
  first.value = std::move(contents[0]);
  if (&first != &last) last.value = std::move(contents[1]);
  if (upper.owns_lock()) upper.unlock();
  lower.unlock();
  complete(*event.frame, node, {}, tasks);
}

void Copy::split_update(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  const uint32_t count = node.variables();
  InstanceState& state = frame.states[node.state];
  const bool writes = event.step >= count;
  const uint32_t place = event.step % count;
  {
    Cell& cell = cells_[frame.touched(node, event.step)[0]];
    const std::lock_guard guard(cell.lock);
    if (!writes && !cell.value) return failed_.store(true, std::memory_order_relaxed);
    (writes ? cell.value : state.values[place]) = writes ? state.values[place] : cell.value;
    if (kMutants && writes) keep_buffer(cell, true);
  }
  // Its partner is itself, in the instance's other event of this group.
  if (state.left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (writes) return complete(frame, node, {}, tasks);
  updated(frame, node, state.values);
  state.left.store(count, std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) runner_.ready({&frame, event.node, count + i});
}

void Copy::cluster(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  if (kMutants && cluster_wrongly(event, tasks)) return;
  if (event.step == Node::kSnapshot) {
    take_snapshot(frame, node);
    return end_snapshot(event, tasks);
  }
  ClusterResult result = result_of_cluster(frame, node);
  {
    const Locks guard(cells_, node.written);
    for (size_t i = 0; i < node.written.size(); ++i) {
      Cell& cell = cells_[node.written[i]];
      if (!result.finals[i]) continue;
      std::swap(cell.value, result.finals[i]);
      if (kMutants) keep_buffer(cell, false);
    }
  }
  end_cluster(frame, node, std::move(result.outputs), tasks);
}

void Copy::take_snapshot(Frame& frame, const Node& node) {
  std::vector<Tensor>& snapshot = frame.states[node.state].several;
  snapshot.clear();
  const Locks guard(cells_, node.resources);
  for (const uint32_t resource : node.resources) snapshot.push_back(cells_[resource].value);
}

void Copy::end_snapshot(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  if (!node.written.empty()) return runner_.ready({&frame, event.node, Node::kWriteBack});
  end_cluster(frame, node, result_of_cluster(frame, node).outputs, tasks);
}

ClusterResult Copy::result_of_cluster(Frame& frame, const Node& node) {
  std::vector<const Tensor*> arguments;
  for (const uint32_t slot : node.inputs) arguments.push_back(&frame.slots[slot]);
  return node.backend->apply_cluster(node, frame.states[node.state].several, arguments);
}

void Copy::end_cluster(Frame& frame, const Node& node, std::vector<Tensor> outputs, Tasks& tasks) {
  if (node.last) tasks.push({Task::Sort::kFinish, &frame});
  tasks.push({Task::Sort::kArrive, &frame, node.slot});
  for (uint32_t k = 0; k < node.results; ++k) {
    tasks.push({Task::Sort::kArrive, &frame, node.slot + 1 + k, std::move(outputs[k])});
  }
}

/// Makes the next element of a many-op ready, or ends the op.
void Copy::next_part(Event event, Tensor&& result, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  if (event.step + 1 < node.parts) {
    runner_.ready({event.frame, event.node, event.step + 1});
  } else {
    complete(*event.frame, node, std::move(result), tasks);
  }
}

void Copy::enqueue(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Tensor element = event.frame->slots[node.inputs[0]];
  if (node.many && node.backend) {
    element = node.backend->element(node, element, event.step);
  } else if (node.many) {
    const size_t bytes = program_.resources[node.resources[0]].type.bytes();
    element = Tensor::copy_of(element.bytes() + event.step * bytes, bytes);
  }
  Cell& cell = cells_[node.resources[0]];
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    if (cell.closed) return failed_.store(true, std::memory_order_relaxed);
    if (!possible(event)) return cell.waiting.push_back(event);
    cell.elements.push_back(std::move(element));
    woken.swap(cell.waiting);
  }
  wake(std::move(woken));
  next_part(event, {}, tasks);
}

void Copy::dequeue(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  Tensor element;
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    if (!possible(event)) return cell.waiting.push_back(event);
    if (cell.elements.empty()) return failed_.store(true, std::memory_order_relaxed);
    if (program_.broken(Defect::kLastInFirstOut)) {
      std::swap(cell.elements.front(), cell.elements.back());
    }
    element = std::move(cell.elements.front());
    cell.elements.pop_front();
    woken.swap(cell.waiting);
  }
  wake(std::move(woken));
  if (node.many && node.backend) {
    std::vector<Tensor>& taken = event.frame->states[node.state].several;
    if (event.step == 0) taken.clear();
    taken.push_back(std::move(element));
    element = {};
    if (event.step + 1 == node.parts) element = node.backend->stacked(node, taken);
  } else if (node.many) {
    Tensor& taken = event.frame->states[node.state].values[0];
    if (event.step == 0) taken = Tensor::of_size(node.type.bytes());
    std::memcpy(taken.bytes() + event.step * element.size_bytes(), element.bytes(),
                element.size_bytes());
    element = taken;
  }
  next_part(event, std::move(element), tasks);
}

void Copy::size(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  int32_t count = 0;
  {
    const std::lock_guard guard(cell.lock);
    count = static_cast<int32_t>(cell.elements.size());
  }
  Backend* const backend = node.backend;
  complete(*event.frame, node, backend ? backend->number(node, count) : Tensor::scalar(count),
           tasks);
}

void Copy::close(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    cell.closed = true;
    woken.swap(cell.waiting);
  }
  wake(std::move(woken));
  complete(*event.frame, node, {}, tasks);
}

void Copy::apply(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  Cell& cell = cells_[node.resources[0]];
  const int64_t local = *frame.slots[node.inputs[1]].as<int64_t>();
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    if (local >= cell.step || program_.broken(Defect::kStaleGradient)) {
      for (int times = program_.broken(Defect::kGradientTwice) ? 2 : 1; times > 0; --times) {
        updated(frame, node, &cell.value);
      }
      ++cell.count;
      woken.swap(cell.waiting);
    }
  }
  wake(std::move(woken));
  complete(frame, node, {}, tasks);
}

void Copy::take_sum(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  Cell& cell = cells_[node.resources[0]];
  if (event.step == Node::kJoin) {
    if (required_by(frame, node) <= 0) return failed_.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard guard(cell.lock);
      cell.line.emplace_back(&frame, event.node);
    }
    return runner_.ready({&frame, event.node, Node::kTake});
  }
  Tensor sum;
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    if (!possible(event)) return cell.waiting.push_back(event);
    sum = cell.value;
    if (!program_.broken(Defect::kKeptSum)) clear_sum(cell, program_.resources[node.resources[0]]);
    cell.count = 0;
    if (!program_.broken(Defect::kOldStep)) ++cell.step;
    std::erase(cell.line, std::pair(&std::as_const(frame), event.node));
    woken.swap(cell.waiting);
  }
  wake(std::move(woken));
  complete(frame, node, std::move(sum), tasks);
}

void Copy::count(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  int32_t count = 0;
  {
    const std::lock_guard guard(cell.lock);
    count = cell.count;
  }
  complete(*event.frame, node, Tensor::scalar(count), tasks);
}

void Copy::set_step(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  {
    const std::lock_guard guard(cell.lock);
    cell.step = *event.frame->slots[node.inputs[0]].as<int64_t>();
  }
  complete(*event.frame, node, {}, tasks);
}

void Copy::acquire(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  {
    const std::lock_guard guard(cell.lock);
    if (!possible(event)) return cell.waiting.push_back(event);
    cell.held = true;
  }
  complete(*event.frame, node, {}, tasks);
}

void Copy::release(Event event, Tasks& tasks) {
  const Node& node = event.frame->node(event.node);
  Cell& cell = cells_[node.resources[0]];
  std::vector<Event> woken;
  {
    const std::lock_guard guard(cell.lock);
    cell.held = false;
    woken.swap(cell.waiting);
  }
  wake(std::move(woken));
  complete(*event.frame, node, {}, tasks);
}

/// All parked events try again. The scheduler chooses which goes first; events that are
/// still impossible are parked again.
void Copy::wake(std::vector<Event> events) {
  if (program_.broken(Defect::kLostWakeUp) && events.size() > 1) events.resize(1);
  for (const Event& event : events) runner_.ready(event);
}

}  // namespace litmusfuzz::executor
