#include "curl_handles.hpp"

#include <gradserve/errors.hpp>

namespace gradserve {

CurlHandles::CurlHandles() {
    // Initialize once per process, in one thread.
    static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (begun != CURLE_OK) throw ConnectionFailed("libcurl failed to initialize");
}

CurlHandle CurlHandles::taken() {
    {
        const std::scoped_lock lock(mutex_);
        if (!idle_.empty()) {
            CurlHandle handle = std::move(idle_.back());
            idle_.pop_back();
            return handle;
        }
    }
    CurlHandle handle(curl_easy_init());
    if (!handle) throw ConnectionFailed("libcurl has no memory for another request");
    return handle;
}

void CurlHandles::give_back(CurlHandle handle) {
    curl_easy_reset(handle.get());
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(handle));
}

}  // namespace gradserve
