#include "tidepool/config.hpp"
#include "tidepool/ring_buffer.hpp"
#include "tidepool/scheduler.hpp"

#include <fstream>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: tidepool CONFIG\n";
        return 2;
    }
    std::ifstream file(argv[1]);
    tidepool::Config config;
    try {
        config = tidepool::read_config(file);
    } catch (const tidepool::ConfigError& error) {
        std::cerr << argv[1] << ":" << error.what() << "\n";
        return 1;
    }
    tidepool::RingBuffer<double, 64> readings;
    tidepool::Scheduler scheduler;
    scheduler.add(tidepool::Clock::now(), [&] { readings.push(0.0); });
    scheduler.run_due(tidepool::Clock::now());
    std::cout << config.station << ": " << readings.size() << " readings\n";
    return 0;
}
