// Mutants with wrong reads and writes.
#include <mutex>

#include "copy.h"

namespace litmusfuzz::executor {
namespace {

/// A word that threads share without a lock.
std::atomic_ref<uint64_t> word_of(Tensor& value) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(value.bytes()));
}

/// A thread's private log of its writes, none of which is cached: a later store waits for
/// it in the core's store buffer, while the core continues with later reads.
void log(uint64_t word) {
  constexpr size_t kLine = 8, kLines = size_t{1} << 18;  // words; 16 MiB
  thread_local std::vector<uint64_t> lines(kLine * kLines);
  thread_local size_t next = 0;
  next = (next + 40503) % kLines;  // unpredictable for a prefetcher
  lines[next * kLine] = word;
}

}  // namespace

bool Copy::read_wrongly(const Node& node, Tensor& seen) {
  const uint32_t resource = node.resources[0];
  const size_t bytes = program_.resources[resource].type.bytes();
  Cell& cell = cells_[resource];
  switch (program_.defect) {
    case Defect::kRelaxedAtomics: {
      if (bytes > sizeof(uint64_t)) return false;
      // Relaxed: that is the defect.
      const uint64_t word = word_of(cell.value).load(std::memory_order_relaxed);
      seen = Tensor::copy_of(&word, bytes);
      return true;
    }
    case Defect::kStoreBuffers: {
      std::optional<Tensor> mine = stores_->newest(resource);
      if (!mine) return false;
      seen = std::move(*mine);
      return true;
    }
    case Defect::kStaleCache: {
      const std::lock_guard guard(cell.lock);
      if (!cell.cached) cell.cached = cell.value;
      seen = cell.cached;
      return true;
    }
    case Defect::kTornWrite: {
      Tensor shared;
      {
        const std::lock_guard guard(cell.lock);
        shared = cell.value;
      }
      seen = Tensor::copy_of(shared.bytes(), bytes);  // while others write
      return true;
    }
    default: return false;
  }
}

bool Copy::write_wrongly(const Node& node, Tensor& value) {
  const uint32_t resource = node.resources[0];
  Cell& cell = cells_[resource];
  switch (program_.defect) {
    case Defect::kRelaxedAtomics: {
      if (value.size_bytes() > sizeof(uint64_t)) return false;
      log(resource);
      // Relaxed: that is the defect.
      word_of(cell.value)
          .store(word_of(value).load(std::memory_order_relaxed), std::memory_order_relaxed);
      return true;
    }
    case Defect::kStoreBuffers: stores_->store(resource, value); return true;
    case Defect::kStaleCache: {
      const std::lock_guard guard(cell.lock);
      std::swap(cell.value, value);
      cell.cached = {};  // an update clears the cache
      return true;
    }
    case Defect::kInPlaceUpdate: value = owned(value); return false;
    case Defect::kTornWrite: {
      Tensor shared;
      {
        const std::lock_guard guard(cell.lock);
        shared = cell.value;
      }
      std::memcpy(shared.bytes(), value.bytes(), value.size_bytes());
      return shared.size_bytes() > sizeof(uint64_t);  // a word is inline in `shared`
    }
    default: return false;
  }
}

void Copy::keep_buffer(Cell& cell, bool in_place) {
  if (in_place) {
    *cell.buffer = cell.value;
  } else {
    cell.buffer = std::make_shared<Tensor>(cell.value);
  }
}

bool Copy::cluster_wrongly(Event event, Tasks& tasks) {
  Frame& frame = *event.frame;
  const Node& node = frame.node(event.node);
  InstanceState& state = frame.states[node.state];
  const bool snapshot = event.step == Node::kSnapshot;
  const auto contents = [&](uint32_t resource) {
    const std::lock_guard guard(cells_[resource].lock);
    return cells_[resource].value;
  };
  switch (program_.defect) {
    case Defect::kSplitSnapshot:  // one variable at a time
      if (!snapshot) return false;
      state.several.push_back(contents(node.resources[state.several.size()]));
      if (state.several.size() < node.resources.size()) {
        runner_.ready(event);
      } else {
        end_snapshot(event, tasks);
      }
      return true;
    case Defect::kSplitWriteBack: {  // likewise
      if (snapshot) return false;
      const uint32_t index = state.left.fetch_add(1, std::memory_order_relaxed);
      if (index == 0) {
        ClusterResult result = result_of_cluster(frame, node);
        state.several = std::move(result.finals);
        state.several.insert(state.several.end(), result.outputs.begin(), result.outputs.end());
      }
      if (state.several[index]) {
        Cell& cell = cells_[node.written[index]];
        const std::lock_guard guard(cell.lock);
        cell.value = state.several[index];
      }
      if (index + 1 < node.written.size()) {
        runner_.ready(event);
      } else {
        const auto outputs = state.several.begin() + static_cast<std::ptrdiff_t>(index) + 1;
        end_cluster(frame, node, {outputs, state.several.end()}, tasks);
      }
      return true;
    }
    case Defect::kAliasedSnapshot:  // it sees later updates
      if (snapshot) {
        state.aliases.clear();
        for (const uint32_t each : node.resources) {
          const std::lock_guard guard(cells_[each].lock);
          state.aliases.push_back(cells_[each].buffer);
        }
      } else {
        for (size_t i = 0; i < node.resources.size(); ++i) {
          const std::lock_guard guard(cells_[node.resources[i]].lock);
          state.several[i] = *state.aliases[i];
        }
      }
      return false;
    default: return false;
  }
}

void Copy::drain() {
  if (!stores_) return;
  stores_->drain([this](uint32_t resource, Tensor value) {
    const std::lock_guard guard(cells_[resource].lock);
    cells_[resource].value = std::move(value);
  });
}

void Copy::flush_stores() {
  if (!stores_) return;
  stores_->drain_all(
      [this](uint32_t resource, Tensor value) { cells_[resource].value = std::move(value); });
}

}  // namespace litmusfuzz::executor
