// What comes in around the packets: frames, datagrams, lists of nodes, patterns of names.

#include "tests/fuzz/fuzz.h"

#include <string>
#include <utility>
#include <vector>

#include "broker/registry/pattern.h"
#include "lib/transport/subject.h"
#include "transporters/tcp/announcement.h"
#include "transporters/tcp/frame.h"
#include "transporters/tcp/static_peers.h"

namespace weft::fuzz {

namespace {

// Takes a byte off the front; 0 when there is none.
std::uint8_t take_byte(BytesView& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

struct Cut {
  std::vector<std::pair<PacketType, std::string>> frames;
  bool failed = false;
  friend bool operator==(const Cut&, const Cut&) = default;
};

constexpr std::size_t kFrameBytesMax = 4096;

Cut cut(BytesView stream, std::size_t piece) {
  FrameDecoder decoder(kFrameBytesMax);
  Cut result;
  while (!stream.empty() && !result.failed) {
    const Padded part(stream.substr(0, piece));
    stream.remove_prefix(part.view().size());
    const Result<> fed = decoder.feed(part.view(), [&](PacketType type, BytesView payload) {
      const volatile char last_of_padding = payload.data()[payload.size() + kReadPadding - 1];
      static_cast<void>(last_of_padding);
      result.frames.emplace_back(type, payload);
      return true;
    });
    result.failed = !fed.ok();
    WEFT_ASSERT(result.failed || decoder.held_bytes() < kFrameBytesMax);
  }
  return result;
}

// However the stream is torn, it is cut into the same frames. The first byte says how it is torn.
void frame(BytesView input) {
  const std::size_t piece = take_byte(input) % 64U + 1;
  const Cut whole = cut(input, input.size());
  const Cut torn = cut(input, piece);
  WEFT_ASSERT(whole == torn);
  for (const auto& [type, payload] : whole.frames) {
    const FrameHeader header = make_frame_header(type, payload.size());
    const Cut again = cut(std::string(header.data(), header.size()) + payload, piece);
    WEFT_ASSERT(!again.failed && again.frames.size() == 1 && again.frames.front().second == payload);
  }
}

void datagram(BytesView input) {
  const auto heard = parse_announcement(input, "dev", "self");
  if (!heard) return;
  WEFT_ASSERT(heard->port != 0 && !heard->node.empty() && heard->node != "self" &&
              heard->node.size() <= kAnnouncedIdBytesMax);
  const std::string again = make_announcement("dev", heard->node, heard->port);
  const auto second = parse_announcement(again, "dev", "self");
  WEFT_ASSERT(second && second->node == heard->node && second->port == heard->port);
}

void check_peers(const Value& urls, ReadFile read_file) {
  const auto peers = read_static_peers(urls, "self", read_file);
  if (!peers.ok()) return;
  for (const StaticPeers::Peer& peer : (*peers).peers) {
    WEFT_ASSERT(!peer.node.empty() && peer.node != "self" && peer.address.valid());
  }
  WEFT_ASSERT((*peers).own_port.value_or(1) != 0);
}

constexpr auto kNoFile = [](const std::string& path) -> Result<std::string> {
  return Error::broker_options(path);
};

// As text, and as the tree it may be the JSON of.
void urls(BytesView input) {
  check_peers(Value(input), kNoFile);
  if (const auto tree = parse_json(input); tree.ok()) check_peers(*tree, kNoFile);
}

void urls_file(BytesView input) {
  check_peers(Value("file://peers"),
              [&](const std::string&) -> Result<std::string> { return std::string(input); });
}

// Text and pattern, parted by a line's end.
void pattern(BytesView input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const BytesView text = input.substr(0, end);
  const BytesView names = input.substr(std::min(end + 1, input.size()));
  const bool strict = matches_strict(text, names);
  if (strict) WEFT_ASSERT(matches_compatible(text, names));  // It takes no less than the strict way.
  if (names.find_first_of("*?") == BytesView::npos) WEFT_ASSERT(strict == (text == names));
  WEFT_ASSERT(matches_strict(text, "**"));
  // The bus never withholds what a pattern of whole tokens means.
  const bool is_of_tokens =
      names.find_first_of(">?") == BytesView::npos &&
      (!names.ends_with('*') || names == "*" || names.ends_with(".*") || names.ends_with("**"));
  if (strict && is_of_tokens && is_subject_name(text)) {
    WEFT_ASSERT(subject_matches(event_subscription(names), text));
  }
}

constexpr Target kTargets[] = {
    {"tcp.frame", frame},         {"udp.datagram", datagram}, {"tcp.urls", urls},
    {"tcp.urls_file", urls_file}, {"pattern", pattern},
};

}  // namespace

std::span<const Target> wire_targets() {
  return kTargets;
}

}  // namespace weft::fuzz
