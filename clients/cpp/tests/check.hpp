#pragma once

#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

/// Says where something is not as it should be, and goes on.
#define CHECK(is_so) check((is_so), #is_so, __FILE__, __LINE__)

inline int failures = 0;

inline void check(bool is_so, const char* what, const char* file, int line) {
    if (is_so) return;
    ++failures;
    std::cerr << file << ':' << line << ": check failed: " << what << '\n';
}

/// What an error says, if something throws one of this type; else "".
template <class E>
std::string thrown(const std::function<void()>& done) {
    try {
        done();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        std::cerr << "unexpected error: " << error.what() << '\n';
    }
    return "";
}

template <class E>
bool throws(const std::function<void()>& done) {
    return !thrown<E>(done).empty();
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// Runs all tests of a program; 1 where something is not as it should be.
inline int run(const std::vector<std::pair<const char*, void (*)()>>& tests) {
    for (const auto& [name, test] : tests) {
        const int before = failures;
        try {
            test();
        } catch (const std::exception& error) {
            ++failures;
            std::cerr << name << ": " << error.what() << '\n';
        }
        if (failures > before) std::cerr << name << " failed\n";
    }
    return failures > 0 ? 1 : 0;
}
