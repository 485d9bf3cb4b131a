#include "transporters/nats/nats_options.h"

#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

namespace weft {

namespace {

Error bad_option(std::string_view option, std::string_view what) {
  return Error::broker_options("transporter.nats." + std::string(option) + ": " + std::string(what) + ".");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '/')) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// What follows the user and password.
bool is_host_and_port(std::string_view address) {
  if (address.empty() || address.find_first_of(" \t\r\n/?#") != std::string_view::npos) return false;
  const std::size_t bracket = address.find(']');  // [::1]:4222
  if ((address.front() == '[') != (bracket != std::string_view::npos)) return false;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return true;
  const std::string_view port = address.substr(colon + 1);
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  return colon > 0 && fault == std::errc() && end == port.data() + port.size() && number >= 1 &&
         number <= 65535;
}

Result<std::vector<std::string>> split_urls(std::string_view urls) {
  std::vector<std::string> servers;
  while (true) {
    const std::size_t comma = urls.find(',');
    const std::string_view url = trim(urls.substr(0, comma));
    const std::size_t scheme_end = url.find("://");
    const std::string scheme =
        scheme_end == std::string_view::npos ? "nats" : lower(url.substr(0, scheme_end));
    std::string_view rest = scheme_end == std::string_view::npos ? url : url.substr(scheme_end + 3);
    if (scheme != "nats" && scheme != "tls") {
      return bad_option("url", "'" + std::string(url) + "' has the scheme '" + scheme +
                                   "'; allowed are nats:// and tls://");
    }
    const std::size_t at = rest.rfind('@');
    const std::string_view address = at == std::string_view::npos ? rest : rest.substr(at + 1);
    if (!is_host_and_port(address)) {
      // The user's password is not repeated.
      return bad_option("url",
                        "'" + std::string(address) +
                            "' is no server address; write nats://[user:password@]host[:port], more of "
                            "them behind commas");
    }
    servers.push_back(scheme + "://" + std::string(rest));
    if (comma == std::string_view::npos) return servers;
    urls.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<std::vector<std::string>> check_nats_options(const NatsOptions& options) {
  auto servers = split_urls(options.url);
  if (!servers.ok()) return servers;

  const std::pair<std::string_view, const std::string&> files[] = {
      {"credentials_file", options.credentials_file}, {"nkey_seed_file", options.nkey_seed_file},
      {"tls_ca_file", options.tls_ca_file},           {"tls_cert_file", options.tls_cert_file},
      {"tls_key_file", options.tls_key_file},
  };
  for (const auto& [option, path] : files) {
    if (!path.empty() && !std::ifstream(path).good()) {
      return bad_option(option, "the file '" + path + "' cannot be read");
    }
  }
  const struct {
    std::string_view one_name;
    const std::string& one;
    std::string_view other_name;
    const std::string& other;
  } pairs[] = {
      {"nkey", options.nkey, "nkey_seed_file", options.nkey_seed_file},
      {"tls_cert_file", options.tls_cert_file, "tls_key_file", options.tls_key_file},
      {"user", options.user, "password", options.password},
  };
  for (const auto& pair : pairs) {
    if (pair.one.empty() == pair.other.empty()) continue;
    const bool has_one = !pair.one.empty();
    return bad_option(has_one ? pair.one_name : pair.other_name,
                      "needs '" + std::string(has_one ? pair.other_name : pair.one_name) + "' beside it");
  }
  const int ways = (options.user.empty() ? 0 : 1) + (options.token.empty() ? 0 : 1) +
                   (options.credentials_file.empty() ? 0 : 1) + (options.nkey.empty() ? 0 : 1);
  if (ways > 1) return bad_option("user", "give one of user, token, credentials_file and nkey, not several");

  const std::pair<std::string_view, Duration> durations[] = {
      {"connect_timeout", options.connect_timeout},
      {"reconnect_wait_max", options.reconnect_wait_max},
      {"ping_interval", options.ping_interval},
  };
  for (const auto& [option, duration] : durations) {
    if (duration < std::chrono::milliseconds(1)) return bad_option(option, "must be at least 1 ms");
  }
  if (options.queue_bytes_max == 0) return bad_option("queue_bytes_max", "must be above 0");
  return servers;
}

}  // namespace weft
