#include "broker/gossip/weave/message.h"

#include "broker/gossip/gossip_rows.h"

namespace weft {

namespace {

constexpr char kVersion = 1;

enum class Part : std::uint8_t {
  kPing = 1,
  kPong,
  kNote,
  kNews,
  kInfos,
  kWants,
  kAccusation,
  kVoucher,
  kSums,
  kDiffering,
  kGet,
  kBuckets,
};

class Writer {
 public:
  explicit Writer(Buffer& out) : out_(out) {}

  void part(Part part) { out_.push_back(static_cast<char>(part)); }
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }
  void u32(std::uint32_t value) { fixed(value, 4); }
  void u64(std::uint64_t value) { fixed(value, 8); }
  void name(std::string_view name) {
    varint(name.size());
    out_.append(name);
  }
  void head(const WeaveHead& head) {
    out_.push_back(static_cast<char>((head.online ? 1 : 0) | (head.left ? 2 : 0)));
    name(head.name);
    varint(head.number);
    u32(head.instance);
    if (!head.online) return;
    varint(head.number - head.content);
    varint(head.info_bytes);
  }
  void heads(const std::vector<WeaveHead>& heads) {
    varint(heads.size());
    for (const WeaveHead& each : heads) head(each);
  }
  void doubt(const WeaveMessage::Doubt& doubt) {
    name(doubt.name);
    varint(doubt.number);
  }

 private:
  void fixed(std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out_.push_back(static_cast<char>(value >> shift));
  }

  Buffer& out_;
};

// Past the end, or past a limit, everything reads as 0 and ok() is false.
class Reader {
 public:
  explicit Reader(BytesView bytes) : rest_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return rest_.empty() || !ok_; }
  std::uint8_t byte() {
    if (rest_.empty()) return fail();
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    return fail();
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  std::string_view name() {
    const std::uint64_t size = varint();
    if (size > rest_.size() || !is_node_id(rest_.substr(0, size))) {
      fail();
      return {};
    }
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return name;
  }
  std::uint64_t number() {
    const std::uint64_t number = varint();
    if (number >= kSeqMax) fail();
    return number;
  }
  WeaveHead head() {
    WeaveHead head;
    const std::uint8_t flags = byte();
    head.online = (flags & 1) != 0;
    head.left = (flags & 2) != 0 && !head.online;
    head.name = name();
    head.number = number();
    head.instance = u32();
    if (!head.online) return head;
    const std::uint64_t age = varint();
    if (age > head.number) fail();
    head.content = head.number - age;
    head.info_bytes = static_cast<std::uint32_t>(varint());
    return head;
  }
  std::vector<WeaveHead> heads() {
    std::vector<WeaveHead> heads(count(8));
    for (WeaveHead& each : heads) {
      each = head();
      if (!ok_) break;
    }
    return heads;
  }
  WeaveMessage::Doubt doubt() {
    WeaveMessage::Doubt doubt;
    doubt.name = name();
    doubt.number = number();
    return doubt;
  }
  // Of things that take `bytes_min` each at least: no more than there can be.
  std::size_t count(std::size_t bytes_min) {
    const std::uint64_t count = varint();
    return count <= rest_.size() / bytes_min ? static_cast<std::size_t>(count) : fail();
  }

 private:
  std::uint8_t fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::uint64_t fixed(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }

  BytesView rest_;
  bool ok_ = true;
};

void read_part(Part part, Reader& in, WeaveMessage& message) {
  switch (part) {
    case Part::kPing: {
      auto& ping = message.ping.emplace();
      ping.nonce = in.u32();
      ping.sum = in.u64();
      ping.number = in.number();
      ping.instance = in.u32();
      return;
    }
    case Part::kPong: {
      auto& pong = message.pong.emplace();
      pong.nonce = in.u32();
      pong.sum = in.u64();
      return;
    }
    case Part::kNote: {
      auto& note = message.note.emplace();
      note.head = in.head();
      note.heard_ms = in.u32();
      note.online_count = in.u32();
      return;
    }
    case Part::kNews:
      message.news = in.heads();
      return;
    case Part::kInfos:
      message.infos = in.heads();
      return;
    case Part::kWants:
      message.wants.resize(in.count(2));
      for (std::string_view& name : message.wants) name = in.name();
      return;
    case Part::kAccusation:
      message.accusation = in.doubt();
      return;
    case Part::kVoucher:
      message.voucher = in.doubt();
      return;
    case Part::kSums:
      for (std::uint32_t& sum : message.sums.emplace()) sum = in.u32();
      return;
    case Part::kDiffering:
      message.differing = in.u64();
      return;
    case Part::kGet:
      message.get = in.u64();
      return;
    case Part::kBuckets: {
      auto& buckets = message.buckets.emplace();
      buckets.which = in.u64();
      buckets.heads = in.heads();
      return;
    }
  }
  in = Reader({});  // A part that is not known: nor is where the next one begins.
}

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

void write(const WeaveMessage& message, Buffer& buffer) {
  Writer out(buffer);
  buffer.push_back(kVersion);
  if (message.ping) {
    out.part(Part::kPing);
    out.u32(message.ping->nonce);
    out.u64(message.ping->sum);
    out.varint(message.ping->number);
    out.u32(message.ping->instance);
  }
  if (message.pong) {
    out.part(Part::kPong);
    out.u32(message.pong->nonce);
    out.u64(message.pong->sum);
  }
  if (message.note) {
    out.part(Part::kNote);
    out.head(message.note->head);
    out.u32(message.note->heard_ms);
    out.u32(message.note->online_count);
  }
  if (!message.news.empty()) {
    out.part(Part::kNews);
    out.heads(message.news);
  }
  if (!message.infos.empty()) {
    out.part(Part::kInfos);
    out.heads(message.infos);
  }
  if (!message.wants.empty()) {
    out.part(Part::kWants);
    out.varint(message.wants.size());
    for (const std::string_view name : message.wants) out.name(name);
  }
  if (message.accusation) {
    out.part(Part::kAccusation);
    out.doubt(*message.accusation);
  }
  if (message.voucher) {
    out.part(Part::kVoucher);
    out.doubt(*message.voucher);
  }
  if (message.sums) {
    out.part(Part::kSums);
    for (const std::uint32_t sum : *message.sums) out.u32(sum);
  }
  if (message.differing) {
    out.part(Part::kDiffering);
    out.u64(*message.differing);
  }
  if (message.get) {
    out.part(Part::kGet);
    out.u64(*message.get);
  }
  if (message.buckets) {
    out.part(Part::kBuckets);
    out.u64(message.buckets->which);
    out.heads(message.buckets->heads);
  }
}

bool read(BytesView bytes, WeaveMessage& message) {
  Reader in(bytes);
  if (in.byte() != kVersion) return false;
  while (!in.done()) read_part(static_cast<Part>(in.byte()), in, message);
  return in.ok();
}

void append_base64(BytesView bytes, Buffer& out) {
  std::uint32_t bits = 0;
  int held = 0;
  for (const char each : bytes) {
    bits = bits << 8 | static_cast<std::uint8_t>(each);
    for (held += 8; held >= 6; held -= 6) out.push_back(kDigits[bits >> (held - 6) & 63]);
  }
  if (held > 0) out.push_back(kDigits[bits << (6 - held) & 63]);
}

bool read_base64(BytesView text, Buffer& out) {
  if (text.size() % 4 == 1) return false;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char each : text) {
    const int digit = digit_of(each);
    if (digit < 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held));
  }
  return true;
}

}  // namespace weft
