#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace gradserve {

/// Entries of a listing, fetched page by page during iteration: an input range.
template <class T>
class Listing {
public:
    struct Page {
        std::vector<T> entries;
        /// The position at which the next page starts; empty after the last page.
        std::string next;
    };

    class Iterator {
    public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;

        const T& operator*() const { return listing_->page_.entries[place_]; }
        Iterator& operator++() {
            ++place_;
            settle();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
            return iterator.listing_ == nullptr;
        }

    private:
        friend class Listing;

        explicit Iterator(Listing* listing) : listing_(listing) { settle(); }

        /// Fetches the next page at the end of this one.
        void settle() {
            while (listing_ != nullptr && place_ == listing_->page_.entries.size()) {
                place_ = 0;
                if (!listing_->fetch()) listing_ = nullptr;
            }
        }

        Listing* listing_;
        std::size_t place_ = 0;
    };

    /// `fetch` returns the page that starts after an entry, or the first page for "".
    explicit Listing(std::function<Page(const std::string& after)> fetch) : fetch_(std::move(fetch)) {}

    /// Throws if fetching a page fails, as does ++.
    [[nodiscard]] Iterator begin() { return Iterator(this); }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

private:
    bool fetch() {
        if (has_begun_ && page_.next.empty()) return false;
        page_ = fetch_(page_.next);
        has_begun_ = true;
        return true;
    }

    std::function<Page(const std::string&)> fetch_;
    Page page_;
    bool has_begun_ = false;
};

}  // namespace gradserve
