#include "tidepool/config.hpp"

#include <istream>

namespace tidepool {

namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) {
        return "";
    }
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

ConfigError::ConfigError(int line, const std::string& reason)
    : std::runtime_error(std::to_string(line) + ": " + reason), line_(line) {}

Config read_config(std::istream& input) {
    Config config;
    std::string text;
    for (int number = 1; std::getline(input, text); ++number) {
        const std::string line = trimmed(text);
        if (line.empty() || line.front() == '#') {
            continue;
        }
        const auto equals = line.find('=');
        if (equals == std::string::npos) {
            throw ConfigError(number, "no '=' in the line");
        }
        const std::string key = trimmed(line.substr(0, equals));
        const std::string value = trimmed(line.substr(equals + 1));
        if (key == "interval") {
            config.interval_s = std::stoi(value);
            if (config.interval_s < 1) {
                throw ConfigError(number, "the interval must be at least 1 second");
            }
        } else if (key == "alarm") {
            config.alarm_level = std::stod(value);
        } else if (key == "station") {
            config.station = value;
        } else {
            throw ConfigError(number, "unknown key " + key);
        }
    }
    return config;
}

}  // namespace tidepool
