#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"
#include "lib/loop/event_loop.h"
#include "lib/protocol/packet.h"

namespace weft {

// What threads of the client library hand over to the loop, in order of arrival.
//
// Detached while the connection is made and destroyed: what comes then is dropped. Shared by the connection
// and by the library's callbacks, which may be the last to let it go.
class NatsMailbox : public std::enable_shared_from_this<NatsMailbox> {
 public:
  enum class Kind : std::uint8_t { kFrame, kInbox, kNoResponders, kComplaint };
  struct Item {
    Kind kind;
    PacketType type;
    std::size_t offset;
    std::size_t bytes;
  };
  struct Content {
    Buffer bytes;
    std::vector<Item> items;
    void clear();
  };
  class Reader {
   public:
    virtual void on_mail() = 0;
    virtual void on_write_wanted(bool wanted) = 0;

   protected:
    ~Reader() = default;
  };

  // Any thread.
  void put(Kind kind, PacketType type, BytesView text);
  // Any thread: the loop's as a rule, and that of an ending subscription.
  void want_write(bool wanted);

  // Loop thread.
  void attach(EventLoop& loop, Reader& reader);
  void detach();
  // Exchanges `to`, which is empty, for what has come.
  void take(Content& to);

 private:
  Reader* reader_ = nullptr;  // Loop thread only.
  std::mutex mutex_;          // Guards what follows.
  EventLoop* loop_ = nullptr;
  Content waiting_;
  bool is_called_ = false;
};

}  // namespace weft
