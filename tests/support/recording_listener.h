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
    add(std::string(to_string(frame.type)) + " " + std::string(frame.payload));
    if (on_each_frame) on_each_frame(frame);
  }
  void on_reconnected() override { add("reconnected"); }
  void on_disconnected(const Error&) override { add("disconnected"); }
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool) override {
    add("sighted " + std::string(node) + " " + address.to_string());
  }
  void on_node_lost(std::string_view node, const Error&) override { add("lost " + std::string(node)); }
  void on_undelivered(std::string_view node, std::string_view correlation) override {
    add("undelivered " + std::string(node) + " " + std::string(correlation));
  }

  [[nodiscard]] std::size_t count(std::string_view line) const {
    std::size_t found = 0;
    for (const std::string& one : lines) found += one == line ? 1 : 0;
    return found;
  }
  [[nodiscard]] bool has(std::string_view line) const { return count(line) > 0; }

  std::vector<std::string> lines;
  std::function<void(const FrameView&)> on_each_frame;
  std::function<void()> on_each_line;

 private:
  void add(std::string line) {
    lines.push_back(std::move(line));
    if (on_each_line) on_each_line();
  }
};

}  // namespace weft::test
