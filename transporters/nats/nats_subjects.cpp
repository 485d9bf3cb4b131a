#include "transporters/nats/nats_subjects.h"

#include <charconv>

#include "lib/transport/subject.h"

namespace weft {

namespace {
constexpr std::size_t kNodesRememberedMax = 4096;
}

NatsSubjects::NatsSubjects(std::string_view name_space) : prefix_(subject_prefix(name_space)) {
  for (int i = 0; i < kPacketTypeCount; ++i) {
    broadcast_[i] = prefix_ + "." + std::string(to_string(static_cast<PacketType>(i)));
  }
}

const char* NatsSubjects::targeted(PacketType type, std::string_view node) {
  auto known = targeted_.find(node);
  if (known == targeted_.end()) {
    if (!is_subject_name(node)) return nullptr;
    if (targeted_.size() >= kNodesRememberedMax) targeted_.clear();
    known = targeted_.emplace(std::string(node), OfTypes()).first;
  }
  std::string& subject = known->second[static_cast<std::size_t>(type)];
  if (subject.empty()) subject.append(broadcast_[static_cast<std::size_t>(type)]).append(".").append(node);
  return subject.c_str();
}

std::string NatsSubjects::any_targeted(std::string_view node) const {
  return prefix_ + ".*." + std::string(node);
}

const char* NatsSubjects::broadcast(PacketType type) const {
  return broadcast_[static_cast<std::size_t>(type)].c_str();
}

const char* NatsSubjects::balanced_request(std::string_view action) {
  if (!is_subject_name(action)) return nullptr;
  scratch_.assign(prefix_).append(".REQB.").append(action);
  return scratch_.c_str();
}

const char* NatsSubjects::balanced_event(std::string_view group, std::string_view event) {
  if (!is_subject_name(group) || !is_subject_name(event)) return nullptr;
  scratch_.assign(prefix_).append(".EVENTB.").append(group).append(".").append(event);
  return scratch_.c_str();
}

std::string NatsSubjects::balanced_event_subscription(std::string_view group,
                                                      std::string_view pattern) const {
  std::string subject = event_subscription(pattern);
  // Without its wildcards it is a name like any other.
  std::string name = subject;
  for (char& c : name) {
    if (c == '*' || c == '>') c = '_';
  }
  if (!is_subject_name(group) || !is_subject_name(name)) return {};
  return prefix_ + ".EVENTB." + std::string(group) + "." + subject;
}

const char* NatsInbox::reply(std::string_view node, std::string_view correlation) {
  if (!is_subject_name(correlation) || correlation.find('.') != std::string_view::npos) return nullptr;
  scratch_.assign(prefix_).append("r.").append(node).append(".").append(correlation);
  return scratch_.c_str();
}

const char* NatsInbox::probe(std::string_view node) {
  scratch_.assign(prefix_).append("p.").append(node);
  return scratch_.c_str();
}

const char* NatsInbox::echo(std::uint64_t number) {
  scratch_.assign(prefix_).append("e.").append(std::to_string(number));
  return scratch_.c_str();
}

std::optional<NatsInbox::Parsed> NatsInbox::parse(std::string_view subject) const {
  if (!subject.starts_with(prefix_)) return std::nullopt;
  subject.remove_prefix(prefix_.size());
  if (subject.size() < 3 || subject[1] != '.') return std::nullopt;
  Parsed parsed{.kind = subject[0]};
  subject.remove_prefix(2);
  switch (parsed.kind) {
    case 'r': {
      const std::size_t dot = subject.rfind('.');
      if (dot == std::string_view::npos) return std::nullopt;
      parsed.node = subject.substr(0, dot);
      parsed.correlation = subject.substr(dot + 1);
      return parsed;
    }
    case 'p':
      parsed.node = subject;
      return parsed;
    case 'e': {
      const auto [end, fault] =
          std::from_chars(subject.data(), subject.data() + subject.size(), parsed.number);
      if (fault != std::errc() || end != subject.data() + subject.size()) return std::nullopt;
      return parsed;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace weft
