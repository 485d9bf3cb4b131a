#include "transporters/nats/nats_mailbox.h"

#include <utility>

namespace weft {

namespace {
constexpr std::size_t kBytesMax = 64UL << 20;  // What an idle loop lets pile up is dropped above it.
constexpr std::size_t kIdleBytesMax = 1UL << 20;
}  // namespace

void NatsMailbox::Content::clear() {
  bytes.clear();
  items.clear();
  if (bytes.capacity() > kIdleBytesMax) bytes = Buffer();
}

void NatsMailbox::put(Kind kind, PacketType type, BytesView text) {
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr || waiting_.bytes.size() > kBytesMax) return;
  waiting_.items.push_back({kind, type, waiting_.bytes.size(), text.size()});
  waiting_.bytes.append(text);
  if (std::exchange(is_called_, true)) return;
  loop_->post([self = shared_from_this()] {
    if (self->reader_ != nullptr) self->reader_->on_mail();
  });
}

void NatsMailbox::want_write(bool wanted) {
  {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    if (!loop_->is_current()) {
      return loop_->post([self = shared_from_this(), wanted] {
        if (self->reader_ != nullptr) self->reader_->on_write_wanted(wanted);
      });
    }
  }
  reader_->on_write_wanted(wanted);
}

void NatsMailbox::attach(EventLoop& loop, Reader& reader) {
  reader_ = &reader;
  const std::lock_guard lock(mutex_);
  loop_ = &loop;
}

void NatsMailbox::detach() {
  reader_ = nullptr;
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void NatsMailbox::take(Content& to) {
  const std::lock_guard lock(mutex_);
  std::swap(to, waiting_);
  is_called_ = false;
}

}  // namespace weft
