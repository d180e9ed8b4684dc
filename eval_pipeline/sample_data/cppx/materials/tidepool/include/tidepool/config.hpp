#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>

#define TIDEPOOL_DEFAULT_INTERVAL 15

namespace tidepool {

struct Config {
    int interval_s = TIDEPOOL_DEFAULT_INTERVAL;
    double alarm_level = 2.5;
    std::string station = "unnamed";
};

/// Thrown for a line that cannot be read; what() begins with the number of the line.
class ConfigError : public std::runtime_error {
public:
    ConfigError(int line, const std::string& reason);
    int line() const noexcept { return line_; }

private:
    int line_;
};

/// Reads lines of the form key = value; blank lines and those that begin with # are passed over.
Config read_config(std::istream& input);

}  // namespace tidepool
