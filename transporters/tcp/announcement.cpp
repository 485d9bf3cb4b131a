#include "transporters/tcp/announcement.h"

#include <algorithm>
#include <charconv>

#include "lib/protocol/text.h"

namespace weft {

namespace {

// A name from an unknown sender goes into logs and into packets to others.
bool is_believable(std::string_view node) {
  return !node.empty() && node.size() <= kAnnouncedIdBytesMax && is_text(node) &&
         std::none_of(node.begin(), node.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7f;
         });
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) return std::nullopt;
  return port;
}

std::optional<Announcement> parse_announcement(BytesView datagram, std::string_view name_space,
                                               std::string_view own_node) {
  const std::size_t first = datagram.find('|');
  if (first == BytesView::npos) return std::nullopt;
  const std::size_t second = datagram.find('|', first + 1);
  if (second == BytesView::npos) return std::nullopt;
  const std::string_view node = datagram.substr(first + 1, second - first - 1);
  const auto port = parse_port(datagram.substr(second + 1));
  if (datagram.substr(0, first) != name_space || !is_believable(node) || node == own_node || !port) {
    return std::nullopt;
  }
  return Announcement{node, *port};
}

std::string make_announcement(std::string_view name_space, std::string_view node, std::uint16_t port) {
  std::string text(name_space);
  text += '|';
  text += node;
  text += '|';
  text += std::to_string(port);
  return text;
}

}  // namespace weft
