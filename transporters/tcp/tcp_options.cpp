#include "transporters/tcp/tcp_options.h"

#include <algorithm>

#include "transporters/tcp/frame.h"

namespace weft {

namespace {

constexpr std::size_t kSendMargin = 64UL << 10;
// A frame's length is a signed 32-bit number.
constexpr std::size_t kPacketSizeMax = 0x7fffffff;

Error bad(std::string_view option, std::string found, std::string_view allowed) {
  return Error::broker_options("TCP transporter: " + std::string(option) + " is " + std::move(found) +
                               "; allowed is " + std::string(allowed) + ".");
}

bool is_ipv4(std::string_view text) {
  int parts = 0;
  while (parts < 4) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || part.size() > 3 || part.find_first_not_of("0123456789") != std::string_view::npos) {
      return false;
    }
    if (std::stoi(std::string(part)) > 255) return false;
    ++parts;
    if (dot == text.size()) break;
    text.remove_prefix(dot + 1);
    if (parts == 4) return false;
  }
  return parts == 4;
}

bool is_multicast(std::string_view text) {
  if (!is_ipv4(text)) return false;
  const int first = std::stoi(std::string(text.substr(0, text.find('.'))));
  return first >= 224 && first <= 239;
}

}  // namespace

Result<> validate(const TcpOptions& options) {
  if (options.max_packet_size < kPacketSizeMin || options.max_packet_size > kPacketSizeMax) {
    return bad("max_packet_size", std::to_string(options.max_packet_size), "4096 to 2147483647 bytes");
  }
  if (options.queue_bytes_max < options.max_packet_size) {
    return bad("queue_bytes_max", std::to_string(options.queue_bytes_max), "at least max_packet_size");
  }
  if (options.queue_total_bytes_max < options.queue_bytes_max) {
    return bad("queue_total_bytes_max", std::to_string(options.queue_total_bytes_max),
               "at least queue_bytes_max");
  }
  if (options.frame_timeout < Duration::zero()) return bad("frame_timeout", "negative", "0 or more");
  if (options.max_accepted == 0) return bad("max_accepted", "0", "1 or more");
  if (options.connect_timeout <= Duration::zero()) return bad("connect_timeout", "not positive", "above 0");
  const Value& urls = options.urls;
  if (!urls.is_null() && !urls.is_string() && !urls.is_array() && !urls.is_object()) {
    return bad("urls", "of another type", "text, a list or an object");
  }
  if (!options.udp_discovery) return {};
  if (options.udp_port == 0) return bad("udp_port", "0", "1 to 65535");
  if (options.udp_period < std::chrono::milliseconds(10)) {
    return bad("udp_period", std::to_string(to_ms(options.udp_period)) + " ms", "10 ms or more");
  }
  if (options.udp_multicast_ttl < 1 || options.udp_multicast_ttl > 255) {
    return bad("udp_multicast_ttl", std::to_string(options.udp_multicast_ttl), "1 to 255");
  }
  if (options.udp_max_discovery < 0) {
    return bad("udp_max_discovery", std::to_string(options.udp_max_discovery), "0 or more");
  }
  if (!options.udp_multicast.empty() && !is_multicast(options.udp_multicast)) {
    return bad("udp_multicast", "'" + options.udp_multicast + "'",
               "224.0.0.0 to 239.255.255.255, or nothing");
  }
  if (!options.udp_bind_address.empty() && !is_ipv4(options.udp_bind_address)) {
    return bad("udp_bind_address", "'" + options.udp_bind_address + "'", "an IPv4 address of this host");
  }
  for (const std::string& address : options.udp_broadcast_addresses) {
    if (!is_ipv4(address)) return bad("udp_broadcast_addresses", "'" + address + "'", "IPv4 addresses");
  }
  return {};
}

std::size_t payload_bytes_max(const TcpOptions& options) {
  const std::size_t margin = std::min(kSendMargin, options.max_packet_size / 2);
  return options.max_packet_size - margin - kFrameHeaderBytes;
}

}  // namespace weft
