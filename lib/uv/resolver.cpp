#include "lib/uv/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/uv/uv_address.h"

namespace weft {

namespace {
constexpr int kThreadsMax = 4;
}

// Shared with the threads, which may outlive the resolver.
struct Resolver::State {
  // Loop thread only.
  std::map<LookupId, Callback> waiting;
  LookupId last_id = 0;

  struct Job {
    LookupId id;
    std::string host;
  };
  std::mutex mutex;           // Guards what follows.
  EventLoop* loop = nullptr;  // Null once the resolver is gone.
  std::deque<Job> jobs;
  int threads = 0;

  static void work(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    while (state->loop != nullptr && !state->jobs.empty()) {
      const Job job = std::move(state->jobs.front());
      state->jobs.pop_front();
      lock.unlock();
      auto result = std::make_unique<Result<std::vector<std::string>>>(resolve_now(job.host));
      lock.lock();
      if (state->loop == nullptr) break;
      state->loop->post([state, id = job.id, result = std::move(result)]() mutable {
        const auto found = state->waiting.find(id);
        if (found == state->waiting.end()) return;
        Callback done = std::move(found->second);
        state->waiting.erase(found);
        done(std::move(*result));
      });
    }
    --state->threads;
  }
};

Resolver::Resolver(EventLoop& loop) : state_(std::make_shared<State>()) {
  state_->loop = &loop;
}

Resolver::~Resolver() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->loop = nullptr;
    state_->jobs.clear();
  }
  state_->waiting.clear();
}

Resolver::LookupId Resolver::resolve(const std::string& host, Callback done) {
  const LookupId id = ++state_->last_id;
  state_->waiting.emplace(id, std::move(done));
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back({id, host});
  if (state_->threads >= kThreadsMax) return id;
  try {
    std::thread([state = state_] { State::work(state); }).detach();
    ++state_->threads;
  } catch (const std::system_error& refused) {
    if (state_->threads > 0) return id;  // One of those will come to it.
    state_->jobs.clear();
    state_->loop->post([state = state_, id, text = std::string(refused.what())] {
      const auto found = state->waiting.find(id);
      if (found == state->waiting.end()) return;
      Callback callback = std::move(found->second);
      state->waiting.erase(found);
      callback(Error(ErrorClass::kRetryable, "No thread to resolve a name: " + text, "EAGAIN"));
    });
  }
  return id;
}

void Resolver::cancel(LookupId lookup) {
  state_->waiting.erase(lookup);
}

Result<std::vector<std::string>> Resolver::resolve_now(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    return Error(ErrorClass::kRetryable, "Host '" + host + "' is not known: " + gai_strerror(status),
                 "ENOTFOUND");
  }
  std::vector<std::string> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    std::string address = from_sockaddr(entry->ai_addr).host;
    if (address.empty() || std::find(addresses.begin(), addresses.end(), address) != addresses.end())
      continue;
    addresses.push_back(std::move(address));
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return Error(ErrorClass::kRetryable, "Host '" + host + "' has no usable address", "ENOTFOUND");
  }
  return addresses;
}

}  // namespace weft
