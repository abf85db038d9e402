#pragma once

#include <curl/curl.h>

#include <memory>
#include <mutex>
#include <vector>

namespace gradserve {

struct CurlCleanup {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

using CurlHandle = std::unique_ptr<CURL, CurlCleanup>;

/// Handles of curl that are lent for one request at a time, each with its connection: as many as there are requests
/// at once.
class CurlHandles {
public:
    CurlHandles();

    /// A handle without options, and perhaps with a connection. Throws ConnectionFailed where there is no memory for
    /// one.
    CurlHandle taken();
    void give_back(CurlHandle handle);

private:
    std::mutex mutex_;
    std::vector<CurlHandle> idle_;
};

}  // namespace gradserve
