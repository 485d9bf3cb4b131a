#include "tools/cli/table.h"

#include <algorithm>
#include <numeric>

#include "lib/base/assert.h"
#include "tools/cli/text.h"

namespace weft::cli {

namespace {

constexpr std::size_t kCutColumnMin = 8;  // Narrower columns say nothing.

std::string_view code_of(Paint paint) {
  switch (paint) {
    case Paint::kStrong:
      return "\x1b[1m";
    case Paint::kDim:
      return "\x1b[2m";
    case Paint::kGood:
      return "\x1b[32m";
    case Paint::kBad:
      return "\x1b[31m";
    case Paint::kNone:
      break;
  }
  return {};
}

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

// Takes columns from the widest until all fit.
void fit(std::vector<std::size_t>& widths, std::size_t room) {
  std::size_t total = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  while (total > room) {
    auto& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= kCutColumnMin) return;
    --widest;
    --total;
  }
}

class Renderer {
 public:
  Renderer(const Table& table, const TableStyle& style) : table_(table), style_(style) {
    for (const Column& column : table.columns) widths_.push_back(text_width(column.title));
    for (const auto& row : table.rows) {
      WEFT_ASSERT(row.size() == widths_.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        widths_[i] = std::max(widths_[i], text_width(printable(row[i].text)));
      }
    }
    if (style.width == 0) return;
    const std::size_t borders = style.boxes ? 3 * widths_.size() + 1 : 2 * (widths_.size() - 1);
    fit(widths_, style.width > borders ? style.width - borders : 0);
  }

  std::string run() {
    rule("┌", "┬", "┐");
    std::vector<Cell> titles;
    for (const Column& column : table_.columns) titles.emplace_back(column.title, Paint::kStrong);
    line(titles);
    rule("├", "┼", "┤");
    for (const auto& row : table_.rows) line(row);
    rule("└", "┴", "┘");
    return std::move(out_);
  }

 private:
  void rule(std::string_view left, std::string_view middle, std::string_view right) {
    if (!style_.boxes) return;
    std::string text(left);
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      text += repeated("─", widths_[i] + 2);
      text += i + 1 < widths_.size() ? middle : right;
    }
    out_ += painted(text, Paint::kDim, style_.colours) + "\n";
  }

  void line(const std::vector<Cell>& cells) {
    const std::string bar = style_.boxes ? painted("│", Paint::kDim, style_.colours) : std::string();
    if (style_.boxes) out_ += bar + " ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      const std::string text = shortened(printable(cells[i].text), widths_[i]);
      const std::string space(widths_[i] - text_width(text), ' ');
      if (table_.columns[i].right) out_ += space;
      out_ += painted(text, cells[i].paint, style_.colours);
      if (!table_.columns[i].right) out_ += space;
      if (style_.boxes) {
        out_ += " " + bar + (last ? "" : " ");
      } else if (!last) {
        out_ += "  ";
      }
    }
    while (out_.ends_with(' ')) out_.pop_back();  // Only plain lines end in some.
    out_ += "\n";
  }

  const Table& table_;
  const TableStyle& style_;
  std::vector<std::size_t> widths_;
  std::string out_;
};

}  // namespace

std::string painted(std::string_view text, Paint paint, bool colours) {
  if (!colours || paint == Paint::kNone || text.empty()) return std::string(text);
  return std::string(code_of(paint)) + std::string(text) + "\x1b[0m";
}

std::string render(const Table& table, const TableStyle& style) {
  return Renderer(table, style).run();
}

}  // namespace weft::cli
