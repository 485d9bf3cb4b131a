#include "lib/uv/uv_poller.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/assert.h"

namespace weft {

namespace {

class UvWatch final : public Poller::Watch {
 public:
  UvWatch(UvLoop& loop, uv_poll_t* handle, int descriptor, Poller::Handler& handler)
      : loop_(loop), handle_(handle), descriptor_(descriptor), handler_(handler) {
    handle_->data = this;
  }
  ~UvWatch() override {
    WEFT_ASSERT(loop_.is_current());
    if (gone_ != nullptr) *gone_ = true;
    uv_poll_stop(handle_.get());
    handle_.reset();
    close(descriptor_);  // The loop does not know it any more.
  }

  void set_interest(bool readable, bool writable) override {
    WEFT_ASSERT(loop_.is_current());
    const int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
    if (events == events_) return;
    events_ = events;
    if (events == 0) {
      uv_poll_stop(handle_.get());
      return;
    }
    uv_poll_start(handle_.get(), events, [](uv_poll_t* handle, int status, int ready) {
      static_cast<UvWatch*>(handle->data)->tell(status < 0 ? UV_READABLE | UV_WRITABLE : ready);
    });
  }

 private:
  void tell(int ready) {
    bool gone = false;
    gone_ = &gone;
    if ((ready & events_ & UV_READABLE) != 0) handler_.on_readable();
    if (gone) return;
    if ((ready & events_ & UV_WRITABLE) != 0) handler_.on_writable();
    if (gone) return;
    gone_ = nullptr;
  }

  UvLoop& loop_;
  HandlePtr<uv_poll_t> handle_;
  const int descriptor_;
  Poller::Handler& handler_;
  int events_ = 0;
  bool* gone_ = nullptr;  // Set while the handler runs: it may destroy this.
};

}  // namespace

std::unique_ptr<Poller::Watch> UvPoller::watch(int descriptor, Handler& handler) {
  WEFT_ASSERT(loop_.is_current());
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  auto* handle = new uv_poll_t;
  if (uv_poll_init(loop_.uv(), handle, own) != 0) {
    delete handle;
    close(own);
    return nullptr;
  }
  return std::make_unique<UvWatch>(loop_, handle, own, handler);
}

}  // namespace weft
