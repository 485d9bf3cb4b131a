#include "transporters/tcp/static_peers.h"

#include <cstdio>
#include <memory>

#include "lib/protocol/serializer.h"
#include "transporters/tcp/announcement.h"

namespace weft {

namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kTcpScheme = "tcp://";
constexpr std::size_t kFileBytesMax = 16UL << 20;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

class Reader {
 public:
  explicit Reader(std::string_view own_node) : own_node_(own_node) {}

  // "[tcp://]host:port/nodeID"
  void entry(std::string_view text) {
    const std::string_view whole = trim(text);
    std::string_view rest = whole;
    if (rest.empty()) return;
    if (rest.starts_with(kTcpScheme)) rest.remove_prefix(kTcpScheme.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos || rest.find('/', slash + 1) != std::string_view::npos ||
        slash + 1 == rest.size()) {
      return warn(whole, "must be host:port/nodeID");
    }
    address(whole, rest.substr(0, slash), rest.substr(slash + 1));
  }

  void list(const Value& entries) {
    for (const Value& each : entries.items()) {
      if (each.is_string()) {
        entries_of(each.str());
      } else {
        warn("a list element", "must be text");
      }
    }
  }

  void object(const Value& members) {
    for (const auto& [node, address_text] : members.members()) {
      if (!address_text.is_string()) {
        warn(node, "must have the form host:port");
        continue;
      }
      std::string_view text = trim(address_text.str());
      if (text.starts_with(kTcpScheme)) text.remove_prefix(kTcpScheme.size());
      if (node.empty()) {
        warn(text, "has no nodeID");
        continue;
      }
      address(std::string(node) + " = " + std::string(text), text, node);
    }
  }

  // Separated by commas.
  void entries_of(std::string_view text) {
    while (!text.empty()) {
      const std::size_t comma = std::min(text.find(','), text.size());
      entry(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }

  Result<> file(std::string_view path, ReadFile read_file) {
    const auto content = read_file(std::string(path));
    if (!content.ok()) return content.error();
    const std::string_view text = trim(*content);
    if (text.starts_with('[') || text.starts_with('{')) {
      // An IPv6 host may begin with a bracket, so only JSON that reads as such is JSON.
      const auto json = parse_json(text);
      if (json.ok()) {
        any(*json);
        return {};
      }
      if (text.starts_with('{') || text.ends_with(']')) {
        return Error::broker_options("TCP transporter: the file of urls is no JSON: " + std::string(path) +
                                     ": " + json.error().message());
      }
    }
    lines(text);
    return {};
  }

  void any(const Value& value) {
    if (value.is_array()) list(value);
    if (value.is_object()) object(value);
  }

  StaticPeers take() { return std::move(found_); }

 private:
  void lines(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      entry(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void address(std::string_view whole, std::string_view text, std::string_view node) {
    const std::size_t colon = text.rfind(':');
    const auto port = colon == std::string_view::npos ? std::nullopt : parse_port(text.substr(colon + 1));
    if (!port) return warn(whole, "has no port from 1 to 65535");
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.starts_with('[') && host.ends_with(']'))
      host = host.substr(1, host.size() - 2);
    if (host.empty()) return warn(whole, "has no host");
    if (node == own_node_) {
      found_.own_port = port;
      return;
    }
    found_.peers.push_back({std::string(node), {std::string(host), *port}});
  }

  void warn(std::string_view what, std::string_view why) {
    found_.warnings.push_back("urls: '" + std::string(what) + "' " + std::string(why) + "; it is left out.");
  }

  const std::string_view own_node_;
  StaticPeers found_;
};

}  // namespace

Result<StaticPeers> read_static_peers(const Value& urls, std::string_view own_node, ReadFile read_file) {
  Reader reader(own_node);
  if (urls.is_string()) {
    const std::string_view text = trim(urls.str());
    if (text.starts_with(kFileScheme)) {
      const Result<> read = reader.file(text.substr(kFileScheme.size()), read_file);
      if (!read.ok()) return read.error();
    } else {
      reader.entries_of(text);
    }
  } else {
    reader.any(urls);
  }
  return reader.take();
}

Result<std::string> read_peer_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return Error::broker_options("TCP transporter: cannot read the file of urls: " + path);
  std::string text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, count);
    if (text.size() > kFileBytesMax) {
      return Error::broker_options("TCP transporter: the file of urls is above 16 MiB: " + path);
    }
  }
  if (std::ferror(file.get()) != 0) {
    return Error::broker_options("TCP transporter: cannot read the file of urls: " + path);
  }
  return text;
}

}  // namespace weft
