#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::cli {

enum class Paint { kNone, kStrong, kDim, kGood, kBad };

// `text` between the terminal's codes for `paint`, or as it is without colours.
[[nodiscard]] std::string painted(std::string_view text, Paint paint, bool colours);

struct Cell {
  Cell(std::string cell_text, Paint cell_paint = Paint::kNone)  // NOLINT(google-explicit-constructor)
      : text(std::move(cell_text)), paint(cell_paint) {}
  std::string text;  // Shown as printable() makes it.
  Paint paint;
};

struct Column {
  std::string title;
  bool right = false;  // Numbers.
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // Each as long as `columns`.
};

struct TableStyle {
  bool boxes = false;  // Lines around the cells; else columns parted by two spaces, for pipes.
  bool colours = false;
  std::size_t width = 0;  // Of the terminal: the widest columns are cut to fit. 0: no limit.
};

// The table as lines, each with its end. Pure.
[[nodiscard]] std::string render(const Table& table, const TableStyle& style);

}  // namespace weft::cli
