#include "broker/strategy/option_reader.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace weft {

namespace {

// Whose option a name is, for those who gave it to another strategy.
struct Owner {
  std::string_view option;
  std::string_view strategies;
};
constexpr std::array<Owner, 15> kOwners = {{
    {"sampleCount", "CpuUsage, Latency, LeastRequests and PeakEwma"},
    {"lowCpuUsage", "CpuUsage"},
    {"lowLatency", "Latency"},
    {"collectCount", "Latency"},
    {"pingInterval", "Latency"},
    {"shardKey", "Shard and Rendezvous"},
    {"vnodes", "Shard"},
    {"ringSize", "Shard"},
    {"cacheSize", "Shard"},
    {"decay", "PeakEwma"},
    {"failurePenalty", "PeakEwma"},
    {"weightKey", "WeightedRoundRobin, WeightedRandom and Rendezvous"},
    {"slowStart", "WeightedRoundRobin and WeightedRandom"},
    {"slots", "Rendezvous"},
    {"loadFactor", "Rendezvous"},
}};

std::string shown(const Value& value) {
  std::ostringstream out;
  if (value.is_string()) {
    out << "the text \"" << value.str().substr(0, 64) << '"';
  } else if (value.is_number()) {
    out << value.f64();
  } else {
    out << "a value of type " << to_string(value.kind());
  }
  return out.str();
}

std::string range_text(std::string_view what, double min, double max) {
  std::ostringstream out;
  out.precision(15);
  out << what << " from " << min << " to " << max;
  return out.str();
}

}  // namespace

const Value* OptionReader::take(std::string_view name, std::string allowed) {
  known_.push_back({name, std::move(allowed)});
  if (error_ || !options_.is_object()) return nullptr;
  const Value* value = options_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void OptionReader::refuse(const Value& value) {
  const Known& option = known_.back();
  error_ =
      Error::broker_options("Strategy '" + std::string(strategy_) + "': option '" + std::string(option.name) +
                                "' is " + shown(value) + "; allowed is " + option.allowed + ".",
                            {{"strategy", strategy_}, {"option", option.name}, {"allowed", option.allowed}});
}

std::int64_t OptionReader::integer(std::string_view name, std::int64_t fallback, std::int64_t min,
                                   std::int64_t max) {
  const Value* value =
      take(name, range_text("an integer", static_cast<double>(min), static_cast<double>(max)));
  if (value == nullptr) return fallback;
  const std::int64_t given = value->i64_or(min - 1);
  if (given >= min && given <= max) return given;
  refuse(*value);
  return fallback;
}

double OptionReader::number(std::string_view name, double fallback, double min, double max) {
  const Value* value = take(name, range_text("a number", min, max));
  if (value == nullptr) return fallback;
  const double given = value->f64_or(min - 1);
  if (given >= min && given <= max) return given;
  refuse(*value);
  return fallback;
}

std::string OptionReader::text(std::string_view name) {
  const Value* value = take(name, "a text");
  if (value == nullptr) return {};
  if (!value->is_string()) refuse(*value);
  return std::string(value->str_or({}));
}

Result<> OptionReader::finish() const {
  if (error_) return *error_;
  if (options_.is_null()) return {};
  const std::string strategy(strategy_);
  if (!options_.is_object()) {
    return Error::broker_options(
        "Strategy '" + strategy + "': its options are " + shown(options_) + "; allowed is an object or null.",
        {{"strategy", strategy}});
  }
  for (const Member& member : options_.members()) {
    const auto is_it = [&](const Known& option) { return option.name == member.key; };
    if (std::any_of(known_.begin(), known_.end(), is_it)) continue;
    std::string text = "Strategy '" + strategy + "' has no option '" + member.key + "'";
    for (const Owner& owner : kOwners) {
      if (owner.option == member.key) text += " (it is one of " + std::string(owner.strategies) + ")";
    }
    text += known_.empty() ? "; it takes none." : "; allowed are ";
    Value allowed = Value::object();
    for (const Known& option : known_) {
      if (!allowed.empty()) text += ", ";
      text += std::string(option.name) + " (" + option.allowed + ")";
      allowed.set(option.name, option.allowed);
    }
    if (!known_.empty()) text += '.';
    return Error::broker_options(text,
                                 {{"strategy", strategy}, {"option", member.key}, {"allowed", allowed}});
  }
  return {};
}

}  // namespace weft
