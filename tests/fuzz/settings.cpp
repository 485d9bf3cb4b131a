// What the operator hands to the runner: configuration files, environment, and the modules' descriptors.

#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "broker/options.h"
#include "tools/runner/config_file.h"
#include "tools/runner/environment.h"
#include "tools/runner/module_loader.h"
#include "tools/runner/service_selection.h"
#include "weft/module.h"

namespace weft::fuzz {

namespace {

using runner::Settings;

// The pieces of `input` between line ends.
std::vector<std::string> lines_of(BytesView input) {
  std::vector<std::string> lines;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    lines.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return lines;
}

// What was accepted makes options that can be checked and shown.
void check_settings(Settings& settings) {
  settings.app.broker.node_id = settings.app.node_id;
  (void)validate(settings.app.broker).ok();
  (void)to_json(describe(settings.app.broker));
  (void)validate(settings.app.tcp).ok();
}

template <bool is_json>
void config(BytesView input) {
  const auto tree =
      runner::parse_config(std::string(input), is_json ? "weft.config.json" : "weft.config.toml");
  if (!tree.ok()) return;
  Settings settings;
  if (apply_config(settings, *tree, "file").ok()) check_settings(settings);
}

void environment(BytesView input) {
  Settings settings;
  if (apply_environment(settings, lines_of(input)).ok()) check_settings(settings);
}

// Four numbers' bytes, then three texts by lines; a text that is "-" is no text at all.
void module(BytesView input) {
  std::array<unsigned char, 8> numbers{};
  std::copy_n(input.begin(), std::min(input.size(), numbers.size()), numbers.begin());
  std::vector<std::string> texts = lines_of(input.substr(std::min(input.size(), numbers.size())));
  texts.resize(3, "-");
  const auto number = [&](std::size_t at, std::uint32_t usual) {
    // 0 in front means the right one, so that the texts are reached.
    return numbers[at] == 0
               ? usual
               : static_cast<std::uint32_t>(numbers[at]) << 16 | static_cast<std::uint32_t>(numbers[at + 1]);
  };
  const auto text = [&](std::size_t at) { return texts[at] == "-" ? nullptr : texts[at].c_str(); };
  const ModuleDescriptor descriptor{
      number(0, kModuleAbi), number(4, sizeof(ModuleDescriptor)), text(0), text(1), text(2), nullptr};
  // Without a function to call none is good.
  WEFT_ASSERT(!runner::check_descriptor("module.so", &descriptor).ok());
}

// Path and glob.
void glob(BytesView input) {
  const std::vector<std::string> lines = lines_of(input);
  if (lines.size() < 2) return;
  (void)runner::matches_glob(lines[0], lines[1]);
}

constexpr Target kTargets[] = {
    {"config.toml", config<false>},
    {"config.json", config<true>},
    {"environment", environment},
    {"module", module},
    {"glob", glob},
};

}  // namespace

std::span<const Target> setting_targets() {
  return kTargets;
}

}  // namespace weft::fuzz
