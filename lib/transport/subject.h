#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {

// The names of a bus: "MOL.REQ.node-1", "MOL-dev.EVENTB.mail.user.>". Dots part a subject into tokens.
//
// Node IDs, actions, groups and event names become tokens of subjects, and some of them come from peers:
// is_subject_name() is asked before one is put into a subject.

// "MOL", or "MOL-<namespace>".
[[nodiscard]] std::string subject_prefix(std::string_view name_space);

// What is wrong with `name` as a part of a subject: blanks, control characters, `*`, `>`, an empty token.
// Nothing when it is good.
[[nodiscard]] std::optional<std::string> subject_name_fault(std::string_view name);
[[nodiscard]] bool is_subject_name(std::string_view name);

// The subscription that receives all events that `pattern` means, and as few others as the bus can tell: of
// wildcards it knows `*`, one whole token, and `>`, all the rest. From the first token on that has a `**` or
// a
// `?` (which may stand for a dot), or ends the pattern with a `*` behind other characters (`user*` means
// `user.x` too), it is `>`; any other token with a `*` becomes `*`.
//
// The receiver matches the event's name once more. In balanced mode that is not enough: `a?c` subscribes `>`,
// so the bus may choose its node for an event that only another member of the group means. Whoever gets such
// an event hands it on to a node that does (EventEngine::receive()).
[[nodiscard]] std::string event_subscription(std::string_view pattern);

// Whether a subscription with the wildcards `*` and `>` takes `subject`.
[[nodiscard]] bool subject_matches(std::string_view subscription, std::string_view subject);

}  // namespace weft
