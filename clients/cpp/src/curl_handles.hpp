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

/// A pool of curl handles, each with its connection. A request borrows one, so there are as many as concurrent
/// requests.
class CurlHandles {
public:
    CurlHandles();

    /// Returns a handle without options, which may have a connection. Throws ConnectionFailed if there is no memory for
    /// one.
    CurlHandle taken();
    void give_back(CurlHandle handle);

private:
    std::mutex mutex_;
    std::vector<CurlHandle> idle_;
};

}  // namespace gradserve
