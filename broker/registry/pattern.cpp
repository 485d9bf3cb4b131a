#include "broker/registry/pattern.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

namespace {

enum class Dots : std::uint8_t { kLiteral, kAnyCharacter };

// The bytes of the character that begins at `at`; a byte that begins none is one by itself.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t announced = lead < 0xc0 ? 1 : (lead < 0xe0 ? 2 : (lead < 0xf0 ? 3 : 4));
  std::size_t count = 1;
  while (count < announced && at + count < text.size() &&
         (static_cast<unsigned char>(text[at + count]) & 0xc0) == 0x80) {
    ++count;
  }
  return count;
}

// One step of a parsed pattern.
struct Step {
  enum class Kind : std::uint8_t { kCharacter, kAny, kStar, kStars };
  Kind kind = Kind::kCharacter;
  std::uint8_t bytes = 0;
  std::uint32_t at = 0;  // Where in the pattern a kCharacter stands.

  [[nodiscard]] bool is_star() const { return kind >= Kind::kStar; }
};

// Simulates the automaton of a pattern: state i means that the steps before i are behind us.
class Matcher {
 public:
  Matcher(std::string_view pattern, Dots dots) : pattern_(pattern) {
    if (pattern.size() > kInlineSteps) {
      heap_steps_.resize(pattern.size());
      heap_states_.resize(pattern.size() + 1);
      steps_ = heap_steps_.data();
      states_ = heap_states_.data();
    }
    for (std::size_t at = 0; at < pattern.size();) {
      Step step;
      step.at = static_cast<std::uint32_t>(at);
      step.bytes = static_cast<std::uint8_t>(character_bytes(pattern, at));
      if (pattern[at] == '*') {
        const bool twice = at + 1 < pattern.size() && pattern[at + 1] == '*';
        step.kind = twice ? Step::Kind::kStars : Step::Kind::kStar;
        step.bytes = twice ? 2 : 1;
      } else if (pattern[at] == '?' || (pattern[at] == '.' && dots == Dots::kAnyCharacter)) {
        step.kind = Step::Kind::kAny;
      }
      at += step.bytes;
      steps_[count_++] = step;
    }
  }

  bool matches(std::string_view text) {
    states_[0] = true;
    for (std::size_t i = 0; i < count_; ++i) states_[i + 1] = states_[i] && steps_[i].is_star();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = character_bytes(text, at);
      if (!advance(text.substr(at, bytes))) return false;
      at += bytes;
    }
    return states_[count_];
  }

 private:
  static constexpr std::size_t kInlineSteps = 64;

  // From the states before `character` to those behind it; false if none is left.
  bool advance(std::string_view character) {
    const bool is_dot = character == ".";
    bool alive = false;
    bool previous = false;  // Of state i - 1, before the character.
    for (std::size_t i = 0; i <= count_; ++i) {
      const bool here = states_[i];
      bool reached = i > 0 && previous && takes(steps_[i - 1], character);
      if (here && i < count_ && steps_[i].is_star()) {
        reached = reached || steps_[i].kind == Step::Kind::kStars || !is_dot;  // A star takes it and stays.
      }
      if (i > 0 && states_[i - 1] && steps_[i - 1].is_star()) reached = true;  // A star that is done.
      previous = here;
      states_[i] = reached;
      alive = alive || reached;
    }
    return alive;
  }

  [[nodiscard]] bool takes(const Step& step, std::string_view character) const {
    if (step.kind == Step::Kind::kAny) return true;
    return step.kind == Step::Kind::kCharacter && pattern_.substr(step.at, step.bytes) == character;
  }

  std::string_view pattern_;
  std::size_t count_ = 0;
  std::array<Step, kInlineSteps> inline_steps_;
  std::array<std::uint8_t, kInlineSteps + 1> inline_states_;
  std::vector<Step> heap_steps_;
  std::vector<std::uint8_t> heap_states_;
  Step* steps_ = inline_steps_.data();
  std::uint8_t* states_ = inline_states_.data();
};

bool matches(std::string_view text, std::string_view pattern, Dots dots) {
  if (pattern.find('?') == std::string_view::npos) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return text == pattern;
    const std::string_view prefix = pattern.substr(0, star);
    if (pattern.substr(star) == "**") return text.starts_with(prefix);
    if (pattern == "*") return text.find('.') == std::string_view::npos;
    if (pattern.substr(star) == "*") {
      return text.starts_with(prefix) && text.find('.', pattern.size()) == std::string_view::npos;
    }
  }
  return Matcher(pattern, dots).matches(text);
}

}  // namespace

bool matches_compatible(std::string_view text, std::string_view pattern) {
  return matches(text, pattern, Dots::kAnyCharacter);
}

bool matches_strict(std::string_view text, std::string_view pattern) {
  return matches(text, pattern, Dots::kLiteral);
}

}  // namespace weft
