#include "tests/support/poll_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace weft::test {

struct PollLoop::Watched {
  int descriptor;
  Handler* handler;  // Null once the watch is gone.
  short events = 0;
};

class PollLoop::WatchHandle final : public Poller::Watch {
 public:
  explicit WatchHandle(std::shared_ptr<Watched> watched) : watched_(std::move(watched)) {}
  ~WatchHandle() override {
    watched_->handler = nullptr;
    close(watched_->descriptor);
  }
  void set_interest(bool readable, bool writable) override {
    watched_->events = static_cast<short>((readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
  }

 private:
  const std::shared_ptr<Watched> watched_;
};

PollLoop::PollLoop() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  update_now();
}

PollLoop::~PollLoop() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return workers_ == 0; });
  std::vector<Callback> dropped = std::move(posted_);
  lock.unlock();
  dropped.clear();
  close(wake_fd_);
}

void PollLoop::update_now() {
  now_ = Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

std::int64_t PollLoop::wall_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool PollLoop::is_current() const {
  return thread_ == std::thread::id() || thread_ == std::this_thread::get_id();
}

EventLoop::TimerId PollLoop::schedule(Instant when, Callback callback) {
  const TimerId id = ++timer_last_;
  timers_.emplace(std::pair(when, id), std::move(callback));
  timer_times_.emplace(id, when);
  return id;
}

void PollLoop::cancel(TimerId timer) {
  const auto known = timer_times_.find(timer);
  if (known == timer_times_.end()) return;
  timers_.erase({known->second, timer});
  timer_times_.erase(known);
}

void PollLoop::post(Callback callback) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(callback));
  if (posted_.size() > 1) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof one);
}

void PollLoop::run_blocking(Callback work, Callback done) {
  {
    const std::lock_guard lock(mutex_);
    ++workers_;
  }
  std::thread([this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    work.reset();
    post(std::move(done));
    const std::lock_guard lock(mutex_);
    --workers_;
    idle_.notify_all();
  }).detach();
}

std::unique_ptr<Poller::Watch> PollLoop::watch(int descriptor, Handler& handler) {
  const int duplicate = dup(descriptor);
  if (duplicate < 0) return nullptr;
  watched_.push_back(std::make_shared<Watched>(Watched{duplicate, &handler}));
  return std::make_unique<WatchHandle>(watched_.back());
}

bool PollLoop::run_until(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  thread_ = std::this_thread::get_id();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    turn(50);
  }
  return true;
}

void PollLoop::drain() {
  thread_ = std::this_thread::get_id();
  while (turn(0)) {
  }
}

bool PollLoop::turn(int wait_ms) {
  std::erase_if(watched_, [](const auto& watched) { return watched->handler == nullptr; });
  const std::vector<std::shared_ptr<Watched>> watched = watched_;
  std::vector<pollfd> polled{{wake_fd_, POLLIN, 0}};
  for (const auto& one : watched) polled.push_back({one->events != 0 ? one->descriptor : -1, one->events, 0});

  if (!timers_.empty()) {
    update_now();
    const auto due_ms =
        std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - now_).count();
    wait_ms = static_cast<int>(std::clamp<std::int64_t>(due_ms, 0, wait_ms));
  }
  poll(polled.data(), polled.size(), wait_ms);
  update_now();

  bool has_run = false;
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto due = timers_.extract(timers_.begin());
    timer_times_.erase(due.key().second);
    due.mapped()();
    has_run = true;
  }
  if (polled[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(wake_fd_, &count, sizeof count);
  }
  std::vector<Callback> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (Callback& callback : posted) callback();
  has_run = has_run || !posted.empty();

  for (std::size_t i = 0; i < watched.size(); ++i) {
    const int seen = polled[i + 1].revents;
    const bool is_broken = (seen & (POLLERR | POLLHUP)) != 0;
    const auto wants = [&](short event) {
      return watched[i]->handler != nullptr && (watched[i]->events & event) != 0 &&
             ((seen & event) != 0 || is_broken);
    };
    if (wants(POLLIN)) watched[i]->handler->on_readable();
    if (wants(POLLOUT)) watched[i]->handler->on_writable();
    has_run = has_run || seen != 0;
  }
  while (!deferred_.empty()) {
    std::vector<Callback> deferred = std::move(deferred_);
    deferred_.clear();
    for (Callback& callback : deferred) callback();
    has_run = true;
  }
  return has_run;
}

}  // namespace weft::test
