#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradserve {

/// Shared read-only memory. Copies are cheap, and keep the memory alive.
class Bytes {
public:
    /// Creates empty memory.
    Bytes() = default;

    /// Takes the memory of a vector, without a copy.
    template <class T>
        requires std::is_trivially_copyable_v<T> && (!std::is_same_v<T, bool>)
    explicit Bytes(std::vector<T> elements) {
        auto owner = std::make_shared<const std::vector<T>>(std::move(elements));
        view_ = std::as_bytes(std::span(*owner));
        owner_ = std::move(owner);
    }

    /// Takes the memory of a string, without a copy.
    explicit Bytes(std::string text) {
        auto owner = std::make_shared<const std::string>(std::move(text));
        view_ = std::as_bytes(std::span(*owner));
        owner_ = std::move(owner);
    }

    /// Refers to memory that it does not own, which must stay alive and unchanged as long as this object and all its
    /// copies.
    static Bytes borrowed(std::span<const std::byte> memory) {
        Bytes made;
        made.view_ = memory;
        made.is_borrowed_ = true;
        return made;
    }

    /// Copies the bytes to memory of its own.
    static Bytes copied(std::span<const std::byte> memory) {
        return Bytes(std::vector<std::byte>(memory.begin(), memory.end()));
    }

    [[nodiscard]] std::span<const std::byte> view() const { return view_; }
    [[nodiscard]] const std::byte* data() const { return view_.data(); }
    [[nodiscard]] std::size_t size() const { return view_.size(); }

    /// Returns the bytes as characters.
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }

    /// Returns a part of the same memory.
    [[nodiscard]] Bytes part(std::size_t start, std::size_t count) const {
        Bytes made = *this;
        made.view_ = view_.subspan(start, count);
        return made;
    }

    /// Returns the same bytes, copied if the memory is borrowed.
    [[nodiscard]] Bytes owned() const { return is_borrowed_ ? copied(view_) : *this; }

private:
    std::shared_ptr<const void> owner_;
    std::span<const std::byte> view_;
    bool is_borrowed_ = false;
};

}  // namespace gradserve
