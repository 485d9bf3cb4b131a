#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace weft {

// Readers that are not in use, so that lending one costs no allocation. Lending may nest.
//
// Thread: any. A blocking handler may read its params while the loop decodes the next packet.
template <typename Reader>
class ReaderPool {
 public:
  ReaderPool() = default;
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;
  ~ReaderPool() {
    for (auto& slot : slots_) delete slot.load();
  }

  class Lent {
   public:
    explicit Lent(ReaderPool& pool) : pool_(pool), reader_(pool.take()) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
      reader_->finish();
      pool_.give_back(std::move(reader_));
    }
    [[nodiscard]] Reader& operator*() const { return *reader_; }
    [[nodiscard]] Reader* operator->() const { return reader_.get(); }

   private:
    ReaderPool& pool_;
    std::unique_ptr<Reader> reader_;
  };

 private:
  [[nodiscard]] std::unique_ptr<Reader> take() {
    for (auto& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Reader* reader = slot.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<Reader>(reader);
      }
    }
    return std::make_unique<Reader>();
  }
  void give_back(std::unique_ptr<Reader> reader) {
    for (auto& slot : slots_) {
      Reader* empty = nullptr;
      if (slot.load(std::memory_order_relaxed) != nullptr) continue;
      if (slot.compare_exchange_strong(empty, reader.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        (void)reader.release();
        return;
      }
    }
  }

  std::array<std::atomic<Reader*>, 4> slots_{};
};

}  // namespace weft
