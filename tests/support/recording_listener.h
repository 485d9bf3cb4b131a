#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/transport/transporter.h"

namespace weft::test {

// Keeps what a Transporter tells, as lines in order: "REQ hello", "undelivered node-9 42", "reconnected" …
class RecordingListener final : public Transporter::Listener {
 public:
  void on_frame(const FrameView& frame) override {
    // The padding is part of the contract; the sanitizers see a read past it.
    const volatile char last_of_padding = frame.payload.data()[frame.payload.size() + kReadPadding - 1];
    static_cast<void>(last_of_padding);
    lines.push_back(std::string(to_string(frame.type)) + " " + std::string(frame.payload));
    if (on_each_frame) on_each_frame(frame);
  }
  void on_reconnected() override { lines.emplace_back("reconnected"); }
  void on_disconnected(const Error&) override { lines.emplace_back("disconnected"); }
  void on_node_sighted(std::string_view node, const SocketAddress& address) override {
    lines.push_back("sighted " + std::string(node) + " " + address.to_string());
  }
  void on_node_lost(std::string_view node, const Error&) override {
    lines.push_back("lost " + std::string(node));
  }
  void on_undelivered(std::string_view node, std::string_view correlation) override {
    lines.push_back("undelivered " + std::string(node) + " " + std::string(correlation));
  }

  [[nodiscard]] std::size_t count(std::string_view line) const {
    std::size_t found = 0;
    for (const std::string& one : lines) found += one == line ? 1 : 0;
    return found;
  }
  [[nodiscard]] bool has(std::string_view line) const { return count(line) > 0; }

  std::vector<std::string> lines;
  std::function<void(const FrameView&)> on_each_frame;
};

}  // namespace weft::test
