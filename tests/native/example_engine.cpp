// Example of a user's engine: no threads, the newest closure first.
#include <litmusfuzz/engine.h>

#include <mutex>
#include <vector>

namespace {

class Newest final : public litmusfuzz::RunState {
 public:
  explicit Newest(std::recursive_mutex& working) : working_(working) {}

  void schedule(litmusfuzz::Closure closure) override {
    const std::lock_guard guard(lock_);
    ready_.push_back(closure);
  }

  void wait() override {
    const std::lock_guard works(working_);  // the limit is one thread
    std::unique_lock lock(lock_);
    while (!ready_.empty()) {
      const litmusfuzz::Closure newest = ready_.back();
      ready_.pop_back();
      lock.unlock();
      ending_.run(newest);
      lock.lock();
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  std::recursive_mutex& working_;
  litmusfuzz::Ending ending_;
  std::mutex lock_;
  std::vector<litmusfuzz::Closure> ready_;
};

class NewestFirst final : public litmusfuzz::Engine {
 public:
  std::unique_ptr<litmusfuzz::RunState> start_run(uint64_t) override {
    return std::make_unique<Newest>(working_);
  }

 private:
  std::recursive_mutex working_;
};

std::unique_ptr<litmusfuzz::Engine> make(litmusfuzz::EngineOptions) {
  return std::make_unique<NewestFirst>();
}

}  // namespace

LITMUSFUZZ_ENGINE(make)
