#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"
#include "lib/error/result.h"
#include "lib/loop/event_loop.h"
#include "lib/net/poller.h"
#include "lib/protocol/packet.h"
#include "transporters/nats/nats_mailbox.h"
#include "transporters/nats/nats_options.h"

namespace weft {

struct NatsLibrary;

// One connection to a NATS server, from its making (nats_dial.cpp) to its loss.
//
// The library runs in its event loop mode: it owns the socket and its buffers, and on the loop's thread we
// tell it when to read and write. Publishing appends to its buffer, which is written once at the end of the
// turn. Its own reconnecting, pinging and flushing are off, so that no thread but the loop's works on a
// connection. Making and destroying one may block, and happen on a worker.
//
// There are two kinds of subscriptions. Hot ones are drained at once after each read. Ordered ones pass
// through one thread of the library, which costs a hop but hands all of them over in the order of arrival.
//
// Ownership: the Handler is borrowed and outlives this. Thread: loop thread only. Upcalls come from the loop,
// and one of them may destroy this.
class NatsConnection final : private Poller::Handler, private NatsMailbox::Reader {
 public:
  class Handler {
   public:
    // A message of a subscription made with `type`. kReadPadding readable bytes follow `payload`.
    // `is_balanced`: of a queue group.
    virtual void on_message(PacketType type, BytesView payload, bool is_balanced) = 0;
    // A message to our inbox; `no_responders`: the server says that nobody took what named this reply
    // subject.
    virtual void on_inbox(std::string_view subject, bool no_responders) = 0;
    // The server refuses something, a subscription for lack of permission perhaps. The connection stands.
    // Comes once for each different text, and later than other upcalls of the same read.
    virtual void on_complaint(const std::string& text) = 0;
    // The connection is over. Comes once, and is the last upcall.
    virtual void on_lost(const Error& reason) = 0;

   protected:
    ~Handler() = default;
  };

  struct DialSettings {
    NatsOptions options;  // Checked.
    std::vector<std::string> servers;
    std::string client_name;
    std::size_t read_bytes = 64UL << 10;  // For one read.
  };
  struct DialJob;  // An attempt under way.
  // The connection, or why there is none: kBrokerOptions when trying again cannot help.
  using DialDone = UniqueFunction<void(Result<std::unique_ptr<NatsConnection>>)>;

  // Tries the servers in order, on a worker. Dropping what is returned abandons the attempt: `done` does not
  // run, and a connection that is made after all is closed at once.
  [[nodiscard]] static std::shared_ptr<DialJob> dial(EventLoop& loop, Poller& poller, DialSettings settings,
                                                     Handler& handler, DialDone done);

  // Closes at once and silently; what the socket does not take is lost.
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;
  // Like destroying it; `done` runs on the loop when the socket is closed.
  static void close(std::unique_ptr<NatsConnection> connection, EventLoop::Callback done);

  // Appends to what is written at the end of the turn. `subject` is good; `reply` may be null.
  [[nodiscard]] Result<> publish(const char* subject, const char* reply, BytesView payload);

  // Empty queue: no queue group.
  [[nodiscard]] Result<> subscribe_hot(const std::string& subject, const std::string& queue, PacketType type);
  // One subscription for all types whose token stands at `type_at` of the subject, where `subject` has its
  // '*': their messages keep the order in which the server sent them.
  [[nodiscard]] Result<> subscribe_hot_types(const std::string& subject, std::size_t type_at);
  [[nodiscard]] Result<> subscribe_ordered(const std::string& subject, PacketType type);
  [[nodiscard]] Result<> subscribe_inbox(const std::string& subject);
  // Ends a hot subscription. What the server has sent us by then is still handed over.
  void unsubscribe(const std::string& subject, const std::string& queue);

  // Ends all but the inbox, at once: what the server has sent by then is dropped.
  void unsubscribe_all();

  // What the server allows; 0: unknown.
  [[nodiscard]] std::size_t payload_bytes_max() const { return payload_bytes_max_; }
  [[nodiscard]] const std::string& server_url() const { return server_url_; }  // Without credentials.
  // Servers that the server named, as URLs without credentials.
  [[nodiscard]] std::vector<std::string> discovered_servers() const;
  [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }
  // The last complaint among what was read so far, before on_complaint() tells of it; empty: none.
  [[nodiscard]] std::string last_complaint() const;

 private:
  struct HotSubscription;
  struct Life {  // Outlives the connection in what is queued on the loop.
    NatsConnection* connection;
  };

  NatsConnection(EventLoop& loop, std::unique_ptr<NatsLibrary> library, Handler& handler,
                 NatsOptions options);
  [[nodiscard]] bool watch(Poller& poller);
  [[nodiscard]] Result<> subscribe_async(const std::string& subject, bool is_inbox, PacketType type);
  std::unique_ptr<NatsLibrary> release();

  void on_readable() override;
  void on_writable() override;
  void on_mail() override;
  void on_write_wanted(bool wanted) override;
  Result<> add_hot(const std::string& subject, const std::string& queue, HotSubscription made);
  void drain_hot();
  // False when an upcall destroyed this.
  bool drain_one(HotSubscription& subscription, std::uint64_t& expected);
  void forget_ended();
  void flush_later();
  void flush();
  void tell_if_lost();
  void tell_complaint(const std::string& text);

  EventLoop& loop_;
  Handler& handler_;
  const NatsOptions options_;
  std::unique_ptr<NatsLibrary> library_;
  std::unique_ptr<Poller::Watch> watch_;
  std::shared_ptr<Life> life_;
  std::shared_ptr<NatsMailbox> mailbox_;
  NatsMailbox::Content reading_;  // Empty between two upcalls: its memory.
  std::vector<std::unique_ptr<HotSubscription>> hot_;
  std::size_t hot_last_ = 0;    // Where the last message was: where the next one is likely.
  std::uint64_t received_ = 0;  // Messages that the library has taken from the socket and we have looked for.
  Buffer message_;              // The message of the upcall, with its padding.
  std::set<std::string> complaints_;  // Told.

  std::size_t payload_bytes_max_ = 0;
  std::string server_url_;
  std::size_t queued_bytes_ = 0;  // Handed to the library and not known to be written.
  bool is_write_wanted_ = false;  // The library has something to write.
  bool is_flush_due_ = false;     // flush() is deferred to the end of the turn.
  bool is_blocked_ = false;       // The socket takes no more: the watch waits until it is writable.
  bool is_over_ = false;
};

}  // namespace weft
