#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace tidepool {

/// Keeps the newest readings of a sensor in a fixed amount of memory.
template <typename T, std::size_t Capacity>
class RingBuffer {
public:
    static_assert(Capacity > 0, "a buffer without room keeps nothing");

    /// Adds a value. When the buffer is full, the oldest value is overwritten and dropped_ is counted up.
    void push(const T& value) {
        slots_[(head_ + size_) % Capacity] = value;
        if (size_ == Capacity) {
            head_ = (head_ + 1) % Capacity;
            ++dropped_;
        } else {
            ++size_;
        }
    }

    /// Removes and returns the oldest value; an empty optional when there is none.
    std::optional<T> pop() {
        if (size_ == 0) {
            return std::nullopt;
        }
        T value = slots_[head_];
        head_ = (head_ + 1) % Capacity;
        --size_;
        return value;
    }

    std::size_t size() const { return size_; }
    std::size_t dropped() const { return dropped_; }

private:
    std::array<T, Capacity> slots_{};
    std::size_t head_ = 0;
    std::size_t size_ = 0;
    std::size_t dropped_ = 0;
};

}  // namespace tidepool
