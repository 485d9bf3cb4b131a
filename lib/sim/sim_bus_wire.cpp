#include "lib/sim/sim_bus_wire.h"

#include <cstring>

#include "lib/base/assert.h"

namespace weft {

namespace {

struct Head {
  std::uint32_t size;
  SimBusMessage::Verb verb;
  PacketType type;
  std::uint16_t name_bytes;
  std::uint16_t tag_bytes;
  std::uint16_t zero;
};
static_assert(sizeof(Head) == 12);

}  // namespace

void append(Buffer& out, const SimBusMessage& message) {
  WEFT_ASSERT(message.name.size() <= UINT16_MAX && message.tag.size() <= UINT16_MAX);
  const std::size_t size = message.name.size() + message.tag.size() + message.payload.size();
  WEFT_ASSERT(size <= kSimBusMessageBytesMax);
  const Head head{.size = static_cast<std::uint32_t>(size),
                  .verb = message.verb,
                  .type = message.type,
                  .name_bytes = static_cast<std::uint16_t>(message.name.size()),
                  .tag_bytes = static_cast<std::uint16_t>(message.tag.size()),
                  .zero = 0};
  out.reserve(out.size() + sizeof(head) + size);
  out.append({reinterpret_cast<const char*>(&head), sizeof(head)});
  out.append(message.name);
  out.append(message.tag);
  out.append(message.payload);
}

namespace {

// Adds to `used` what was read; false when `take` stopped.
bool read_all(BytesView bytes, FunctionRef<bool(const SimBusMessage&)> take, std::size_t& used) {
  while (bytes.size() - used >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, bytes.data() + used, sizeof(head));
    const std::size_t names = std::size_t{head.name_bytes} + head.tag_bytes;
    WEFT_ASSERT(head.size <= kSimBusMessageBytesMax && names <= head.size);  // Both ends are ours.
    if (bytes.size() - used - sizeof(Head) < head.size) break;
    const char* content = bytes.data() + used + sizeof(Head);
    used += sizeof(Head) + head.size;
    const SimBusMessage message{.verb = head.verb,
                                .type = head.type,
                                .name = {content, head.name_bytes},
                                .tag = {content + head.name_bytes, head.tag_bytes},
                                .payload = {content + names, head.size - names}};
    if (!take(message)) return false;
  }
  return true;
}

}  // namespace

void SimBusReader::read(BytesView bytes, FunctionRef<bool(const SimBusMessage&)> take) {
  std::size_t used = 0;
  if (rest_.empty()) {
    if (read_all(bytes, take, used)) rest_.append(bytes.substr(used));
    return;
  }
  rest_.append(bytes);
  if (read_all(rest_.view(), take, used)) rest_.consume(used);
}

}  // namespace weft
