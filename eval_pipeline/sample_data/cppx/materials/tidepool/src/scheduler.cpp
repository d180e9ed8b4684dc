#include "tidepool/scheduler.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tidepool {

// 같은 시각의 작업은 먼저 등록된 것이 먼저 실행된다.
bool Scheduler::Later::operator()(const Job& left, const Job& right) const {
    if (left.due != right.due) {
        return left.due > right.due;
    }
    return left.order > right.order;
}

std::uint64_t Scheduler::add(Clock::time_point due, std::function<void()> action) {
    if (stopped_) {
        throw std::logic_error("scheduler has been stopped");
    }
    const auto order = next_order_++;
    queue_.push(Job{due, order, std::move(action)});
    return order;
}

bool Scheduler::cancel(std::uint64_t order) {
    if (order == 0 || order >= next_order_) {
        return false;
    }
    cancelled_.push_back(order);
    return true;
}

std::size_t Scheduler::run_due(Clock::time_point now) {
    std::size_t ran = 0;
    while (!queue_.empty() && queue_.top().due <= now) {
        Job job = queue_.top();
        queue_.pop();
        const auto found = std::find(cancelled_.begin(), cancelled_.end(), job.order);
        if (found != cancelled_.end()) {
            cancelled_.erase(found);
            continue;
        }
        job.action();
        ++ran;
    }
    return ran;
}

void Scheduler::stop() {
    queue_ = {};
    cancelled_.clear();
    stopped_ = true;
}

}  // namespace tidepool
