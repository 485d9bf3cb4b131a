#include "lib/base/buffer.h"

#include <algorithm>

namespace weft {

void Buffer::grow(std::size_t capacity_min) {
  const std::size_t capacity = std::max<std::size_t>({capacity_min, capacity_ * 2, 256});
  std::unique_ptr<char[]> grown(new char[capacity + kReadPadding]);
  if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
  std::memset(grown.get() + size_, 0, capacity + kReadPadding - size_);  // Readers may look at the padding.
  data_ = std::move(grown);
  capacity_ = capacity;
}

}  // namespace weft
