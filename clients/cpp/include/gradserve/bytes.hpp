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

/// Memory that is read and shared, and not written: copies of it are cheap, and keep it alive.
class Bytes {
public:
    /// No bytes.
    Bytes() = default;

    /// The memory of a vector, which moves here and is not copied.
    template <class T>
        requires std::is_trivially_copyable_v<T> && (!std::is_same_v<T, bool>)
    explicit Bytes(std::vector<T> elements) {
        auto owner = std::make_shared<const std::vector<T>>(std::move(elements));
        view_ = std::as_bytes(std::span(*owner));
        owner_ = std::move(owner);
    }

    /// The memory of a string, which moves here and is not copied.
    explicit Bytes(std::string text) {
        auto owner = std::make_shared<const std::string>(std::move(text));
        view_ = std::as_bytes(std::span(*owner));
        owner_ = std::move(owner);
    }

    /// Memory of somebody else, which has to live, unchanged, for as long as this and all copies of this do.
    static Bytes borrowed(std::span<const std::byte> memory) {
        Bytes made;
        made.view_ = memory;
        made.is_borrowed_ = true;
        return made;
    }

    /// A copy in memory of its own.
    static Bytes copied(std::span<const std::byte> memory) {
        return Bytes(std::vector<std::byte>(memory.begin(), memory.end()));
    }

    [[nodiscard]] std::span<const std::byte> view() const { return view_; }
    [[nodiscard]] const std::byte* data() const { return view_.data(); }
    [[nodiscard]] std::size_t size() const { return view_.size(); }

    /// The bytes as characters.
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }

    /// A part, in the same memory.
    [[nodiscard]] Bytes part(std::size_t start, std::size_t count) const {
        Bytes made = *this;
        made.view_ = view_.subspan(start, count);
        return made;
    }

    /// The same bytes, copied if they are somebody else's.
    [[nodiscard]] Bytes owned() const { return is_borrowed_ ? copied(view_) : *this; }

private:
    std::shared_ptr<const void> owner_;
    std::span<const std::byte> view_;
    bool is_borrowed_ = false;
};

}  // namespace gradserve
