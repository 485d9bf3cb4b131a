#include "lib/value/iso_time.h"

#include <chrono>
#include <cstdio>

namespace weft {

namespace {

// Takes `digits` decimal digits off the front of `text`.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

// The calendar repeats after so many years and days; std::chrono's own years end at ±32767.
constexpr int kEraYears = 400;
constexpr std::int64_t kEraDays = 146'097;
constexpr std::int64_t kDateMsMax = 8'640'000'000'000'000;  // JavaScript's dates end here.

bool take_char(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_iso_time(Timestamp time) {
  using namespace std::chrono;
  const milliseconds since_epoch(time.ms);
  const auto day = floor<days>(since_epoch);
  const std::int64_t era = day.count() / kEraDays - (day.count() % kEraDays < 0 ? 1 : 0);
  const year_month_day date(sys_days(days(day.count() - era * kEraDays)));
  const hh_mm_ss clock(since_epoch - day);
  const auto year = static_cast<int>(static_cast<int>(date.year()) + era * kEraYears);
  char text[48];
  const char* format = year < 0 || year > 9999 ? "%+07d-%02u-%02uT%02d:%02d:%02d.%03dZ"
                                               : "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ";
  const int size = std::snprintf(
      text, sizeof text, format, year, static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return {text, static_cast<std::size_t>(size)};
}

std::string to_utc_text(Timestamp time) {
  using namespace std::chrono;
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_time<milliseconds> point{milliseconds(time.ms)};
  const auto day = floor<days>(point);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(point - day));
  char text[64];
  const int size = std::snprintf(
      text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT", kDays[weekday(day).c_encoding()],
      static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
      static_cast<int>(date.year()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()));
  return {text, static_cast<std::size_t>(size)};
}

std::optional<Timestamp> parse_iso_time(std::string_view text) {
  using namespace std::chrono;
  const bool is_negative = !text.empty() && text.front() == '-';
  const bool is_expanded = is_negative || (!text.empty() && text.front() == '+');
  if (is_expanded) text.remove_prefix(1);
  const auto y = take_number(text, is_expanded ? 6 : 4);
  if (!y || (is_negative && *y == 0) || !take_char(text, '-')) return std::nullopt;
  const auto mo = take_number(text, 2);
  if (!mo || !take_char(text, '-')) return std::nullopt;
  const auto d = take_number(text, 2);
  if (!d) return std::nullopt;
  const int signed_year = is_negative ? -*y : *y;
  const int era = signed_year / kEraYears - (signed_year % kEraYears < 0 ? 1 : 0);
  const year_month_day date(year(signed_year - era * kEraYears), month(static_cast<unsigned>(*mo)),
                            day(static_cast<unsigned>(*d)));
  if (!date.ok()) return std::nullopt;
  milliseconds time = sys_days(date).time_since_epoch() + days(era * kEraDays);
  if (take_char(text, 'T') || take_char(text, ' ')) {
    const auto h = take_number(text, 2);
    if (!h || *h > 24 || !take_char(text, ':')) return std::nullopt;
    const auto mi = take_number(text, 2);
    if (!mi || *mi > 59) return std::nullopt;
    time += hours(*h) + minutes(*mi);
    if (take_char(text, ':')) {
      const auto s = take_number(text, 2);
      if (!s || *s > 60) return std::nullopt;
      time += seconds(*s);
      if (take_char(text, '.')) {
        int scale = 100;
        if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
          time += milliseconds((text.front() - '0') * scale);
          scale /= 10;
          text.remove_prefix(1);
        }
      }
    }
    if (!take_char(text, 'Z') && !text.empty()) {
      const int sign = text.front() == '-' ? -1 : 1;
      if (!take_char(text, '+') && !take_char(text, '-')) return std::nullopt;
      const auto zone_hours = take_number(text, 2);
      take_char(text, ':');
      const auto zone_minutes = take_number(text, 2);
      if (!zone_hours || !zone_minutes || *zone_hours > 23 || *zone_minutes > 59) return std::nullopt;
      time -= sign * (hours(*zone_hours) + minutes(*zone_minutes));
    }
  }
  if (!text.empty() || time.count() > kDateMsMax || time.count() < -kDateMsMax) return std::nullopt;
  return Timestamp{time.count()};
}

}  // namespace weft
