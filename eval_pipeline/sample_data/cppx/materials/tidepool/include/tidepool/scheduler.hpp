#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace tidepool {

using Clock = std::chrono::steady_clock;

struct Job {
    Clock::time_point due;
    std::uint64_t order;
    std::function<void()> action;
};

/// Runs jobs on the thread that calls run_due(); there is no lock, so it must stay on one thread.
class Scheduler {
public:
    /// Returns the number by which the job can be cancelled.
    std::uint64_t add(Clock::time_point due, std::function<void()> action);

    bool cancel(std::uint64_t order);

    /// Runs every job that is due at now, earliest first; returns how many ran.
    std::size_t run_due(Clock::time_point now);

    /// Forgets all jobs without running them.
    void stop();

private:
    struct Later {
        bool operator()(const Job& left, const Job& right) const;
    };

    std::priority_queue<Job, std::vector<Job>, Later> queue_;
    std::vector<std::uint64_t> cancelled_;
    std::uint64_t next_order_ = 1;
    bool stopped_ = false;
};

}  // namespace tidepool
