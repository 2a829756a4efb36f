#include "schedulers/event_counts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "schedulers/random_walk.h"

namespace litmusfuzz::executor {
namespace {

/// All executions resolve a join of two equal chains alike with probability 2 in 2^16.
constexpr int kExecutions = 16;

/// Parent of each event, merged over executions.
class Tree {
 public:
  static constexpr uint64_t kRoot = UINT64_MAX;

  void hang(uint64_t event, uint64_t from) {
    const auto [found, is_new] = parents_.try_emplace(event, from);
    if (!is_new && found->second != from) found->second = common(found->second, from);
  }
  uint64_t parent(uint64_t event) const {
    const auto found = parents_.find(event);
    return found == parents_.end() ? kRoot : found->second;
  }

 private:
  uint64_t common(uint64_t one, uint64_t other) const {
    std::unordered_set<uint64_t> above{kRoot};
    for (; one != kRoot; one = parent(one)) above.insert(one);
    while (!above.contains(other)) other = parent(other);
    return other;
  }

  std::unordered_map<uint64_t, uint64_t> parents_;
};

/// Records the events of an execution in order.
class Watch final : public Scheduler {
 public:
  explicit Watch(Tree& tree) : tree_(tree) {}
  void begin(const Runtime& runtime) override {
    runtime_ = &runtime;
    order_.clear();
    last_ = Tree::kRoot;
  }
  void ready(Ticket ticket) override { tree_.hang(runtime_->step(ticket).id, last_); }
  std::optional<size_t> choose(const Choices& choices) override {
    const std::optional<size_t> place = walk_.choose(choices);
    order_.push_back(runtime_->step(choices[*place]));
    last_ = order_.back().id;
    return place;
  }
  const std::vector<Step>& order() const { return order_; }

 private:
  Tree& tree_;
  RandomWalk walk_{0};
  const Runtime* runtime_ = nullptr;
  std::vector<Step> order_;
  uint64_t last_ = Tree::kRoot;
};

/// By event: mean number of counted events that it leads to, itself included, over the
/// executions that contain it; `otherwise` for an event in none.
template <typename Counts>
std::vector<uint32_t> means(const std::vector<std::vector<Step>>& orders,
                            const std::vector<uint64_t>& parents, uint32_t otherwise,
                            Counts counts) {
  std::vector<uint64_t> sums(parents.size()), below(parents.size());
  std::vector<uint32_t> seen(parents.size());
  for (const std::vector<Step>& order : orders) {
    // From the last to the first: children come after their parents.
    for (auto step = order.rbegin(); step != order.rend(); ++step) {
      const uint64_t led_to = below[step->id] + (counts(*step) ? 1 : 0);
      const uint64_t from = parents[step->id];
      if (from != Tree::kRoot) below[from] += led_to;
      sums[step->id] += led_to;
      ++seen[step->id];
    }
    std::fill(below.begin(), below.end(), 0);
  }
  std::vector<uint32_t> means(parents.size(), otherwise);
  for (uint64_t id = 0; id < means.size(); ++id) {
    if (seen[id]) means[id] = static_cast<uint32_t>((sums[id] + seen[id] / 2) / seen[id]);
  }
  return means;
}

}  // namespace

EventCounts::EventCounts(Runtime& runtime) {
  Tree tree;
  std::vector<std::vector<Step>> orders;
  Watch watch(tree);
  uint64_t count = 0;  // one more than the highest number of an event
  uint32_t resources = 0;
  for (int i = 0; i < kExecutions; ++i) {
    runtime.run(watch);
    orders.push_back(watch.order());
    longest_ = std::max(longest_, static_cast<uint32_t>(watch.order().size()));
    for (const Step& each : watch.order()) {
      count = std::max(count, each.id + 1);
      for (const uint32_t touched : each.resources) resources = std::max(resources, touched + 1);
    }
  }
  std::vector<uint64_t> parents(count);
  for (uint64_t id = 0; id < count; ++id) parents[id] = tree.parent(id);
  led_to_ = means(orders, parents, 1, [](const Step&) { return true; });
  on_.resize(resources);
  for (uint32_t r = 0; r < resources; ++r) {
    on_[r] = means(orders, parents, 0, [&](const Step& step) { return step.touches(r); });
    const bool contended = std::any_of(orders.begin(), orders.end(), [&](const auto& order) {
      const auto touching = [&](const Step& step) { return step.touches(r); };
      const auto changing = [&](const Step& step) { return step.touches(r) && !step.reads_only; };
      return std::count_if(order.begin(), order.end(), touching) > 1 &&
             std::any_of(order.begin(), order.end(), changing);
    });
    if (contended) contended_.push_back(r);
  }
}

}  // namespace litmusfuzz::executor
