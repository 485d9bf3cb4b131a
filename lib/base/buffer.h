#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace weft {

// Bytes are viewed as std::string_view everywhere: one vocabulary for text and for frames.
using BytesView = std::string_view;

// Readable bytes that must follow a message handed to a decoder; their content does not matter.
inline constexpr std::size_t kReadPadding = 64;

// A growable run of bytes: what frames are encoded into and what sockets write from.
//
// Always keeps kReadPadding readable bytes behind its content. Grows by doubling; never shrinks by itself, so
// a reused buffer costs no allocation. Moved, not copied.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  [[nodiscard]] char* data() { return data_.get(); }
  [[nodiscard]] const char* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] BytesView view() const { return {data_.get(), size_}; }

  void clear() { size_ = 0; }
  void truncate(std::size_t size) {
    if (size < size_) size_ = size;
  }
  void reserve(std::size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }

  // Room for `count` more bytes; write there, then call commit() with what was used.
  [[nodiscard]] char* prepare(std::size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    return data_.get() + size_;
  }
  void commit(std::size_t count) { size_ += count; }

  void append(BytesView bytes) {
    if (bytes.empty()) return;
    std::memcpy(prepare(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void push_back(char byte) {
    *prepare(1) = byte;
    ++size_;
  }
  // Drops the first `count` bytes; the rest moves to the front.
  void consume(std::size_t count) {
    if (count >= size_) {
      size_ = 0;
      return;
    }
    std::memmove(data_.get(), data_.get() + count, size_ - count);
    size_ -= count;
  }

 private:
  void grow(std::size_t capacity_min);

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace weft
