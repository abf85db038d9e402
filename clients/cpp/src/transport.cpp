#include "transport.hpp"

#include "text.hpp"

#include <gradserve/client.hpp>
#include <gradserve/errors.hpp>

#include <algorithm>
#include <limits>
#include <new>

namespace gradserve {

/// The shortest timeout of an attempt that has begun.
static constexpr std::chrono::milliseconds least_time{50};
/// Time after which the client closes idle connections. Servers close them after 75 s by default.
static constexpr long most_idle_seconds = 60;

using CurlList = std::unique_ptr<curl_slist, CurlCleanup>;
using CurlText = std::unique_ptr<char, decltype(&curl_free)>;

static std::string part_of(CURLU* url, CURLUPart part) {
    char* found = nullptr;
    if (curl_url_get(url, part, &found, 0) != CURLUE_OK) return "";
    return CurlText(found, curl_free).get();
}

/// Returns the URL without a trailing slash. Errors do not quote the URL, which may contain a password.
static std::string checked_url(const std::string& url) {
    const std::unique_ptr<CURLU, CurlCleanup> parsed(curl_url());
    if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK || url.find('\0') != url.npos)
        throw InputError("the server's URL is invalid");
    const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
    if ((scheme != "http" && scheme != "https") || part_of(parsed.get(), CURLUPART_HOST).empty() ||
        url.find_first_of("?#") != url.npos)
        throw InputError("the server's URL is invalid: expected http:// or https://, a host, and no query");
    return url.substr(0, url.find_last_not_of('/') + 1);
}

Transport::Transport(const std::string& url, std::string key, std::uint64_t most_of_answer)
    : base_(checked_url(url)),
      key_(std::move(key)),
      most_of_answer_(std::min<std::uint64_t>(most_of_answer, std::numeric_limits<curl_off_t>::max())) {
    if (std::ranges::any_of(key_, [](char letter) { return letter <= ' ' || letter > '~'; }))
        throw InputError("the API key contains characters that are not allowed in a header");
}

namespace {

/// A request in progress: curl's callbacks, and the response.
class Transfer {
public:
    Transfer(const Request& request, std::uint64_t most, const std::stop_token& stop)
        : request_(request), most_(most), stop_(stop) {}

    void set_up(CURL* handle);
    Reply reply(CURL* handle);

    bool is_too_large = false;

private:
    static std::size_t read(char* into, std::size_t, std::size_t room, void* self);
    static int seek(void* self, curl_off_t offset, int origin);
    static std::size_t write(const char* from, std::size_t, std::size_t count, void* self);
    static std::size_t header(const char* from, std::size_t, std::size_t count, void* self);
    static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

    [[nodiscard]] curl_off_t length() const;
    bool take(std::span<const std::byte> bytes);
    void take_header(std::string_view line);

    const Request& request_;
    std::uint64_t most_;
    const std::stop_token& stop_;

    /// The part of the body that curl has read: whole pieces, and bytes of the next one.
    std::size_t pieces_given_ = 0;
    std::size_t bytes_given_ = 0;

    std::map<std::string, std::string, std::less<>> headers_;
    std::vector<std::byte> body_;
};

void Transfer::set_up(CURL* handle) {
    if (!request_.body.empty()) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, length());
        curl_easy_setopt(handle, CURLOPT_READFUNCTION, read);
        curl_easy_setopt(handle, CURLOPT_READDATA, this);
        curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
        curl_easy_setopt(handle, CURLOPT_SEEKDATA, this);
    }
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, this);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
}

curl_off_t Transfer::length() const {
    curl_off_t total = 0;
    for (const Bytes& piece : request_.body) total += static_cast<curl_off_t>(piece.size());
    return total;
}

std::size_t Transfer::read(char* into, std::size_t, std::size_t room, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const std::vector<Bytes>& pieces = transfer.request_.body;
    std::size_t given = 0;
    while (given < room && transfer.pieces_given_ < pieces.size()) {
        const std::span<const std::byte> rest = pieces[transfer.pieces_given_].view().subspan(transfer.bytes_given_);
        const std::size_t count = std::min(room - given, rest.size());
        std::copy_n(rest.begin(), count, reinterpret_cast<std::byte*>(into) + given);
        given += count;
        transfer.bytes_given_ += count;
        if (count == rest.size()) {
            ++transfer.pieces_given_;
            transfer.bytes_given_ = 0;
        }
    }
    return given;
}

/// Restarts the body. curl needs this if a connection turns out to be closed before the server has read anything.
int Transfer::seek(void* self, curl_off_t offset, int origin) {
    if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.pieces_given_ = transfer.bytes_given_ = 0;
    return CURL_SEEKFUNC_OK;
}

bool Transfer::take(std::span<const std::byte> bytes) {
    is_too_large = bytes.size() > most_ || body_.size() > most_ - bytes.size();
    if (!is_too_large) body_.insert(body_.end(), bytes.begin(), bytes.end());
    return !is_too_large;
}

std::size_t Transfer::write(const char* from, std::size_t, std::size_t count, void* self) {
    const auto bytes = std::as_bytes(std::span(from, count));
    try {
        return static_cast<Transfer*>(self)->take(bytes) ? count : 0;
    } catch (const std::bad_alloc&) {
        return 0;  // exceptions must not pass through curl
    }
}

void Transfer::take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) headers_.clear();  // drop the headers of an informational response
    const std::size_t colon = line.find(':');
    if (colon != line.npos) headers_.insert_or_assign(lower(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
}

std::size_t Transfer::header(const char* from, std::size_t, std::size_t count, void* self) {
    try {
        static_cast<Transfer*>(self)->take_header({from, count});
        return count;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

int Transfer::progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->stop_.stop_requested() ? 1 : 0;
}

Reply Transfer::reply(CURL* handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return {static_cast<int>(status), std::move(headers_), Bytes(std::move(body_))};
}

}  // namespace

static CurlList headers_of(const Request& request, const std::string& key) {
    CurlList list;
    const auto append = [&](const std::string& line) {
        curl_slist* const longer = curl_slist_append(list.get(), line.c_str());
        if (longer == nullptr) throw std::bad_alloc();
        static_cast<void>(list.release());
        list.reset(longer);
    };
    for (const auto& [name, value] : request.headers) append(name + ": " + value);
    // A compressed response would exceed its stated length, and tensors do not compress well.
    append("Accept-Encoding: identity");
    append(std::string("User-Agent: gradserve-cpp/") + version);
    append("Expect:");
    if (!key.empty()) append("Authorization: Bearer " + key);
    return list;
}

static void set_limits(CURL* handle, const Request& request, std::optional<std::chrono::milliseconds> left) {
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_MAXAGE_CONN, most_idle_seconds);
    if (left) {
        constexpr std::chrono::milliseconds most{std::numeric_limits<std::int32_t>::max()};
        curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(std::clamp(*left, least_time, most).count()));
    }
    // On an idle connection, curl itself resends a request that the server may not have read. If the request stores
    // something, the server may have stored it, so it needs a fresh connection.
    const bool is_sent_once = request.keeps && !request.headers.contains("Idempotency-Key");
    curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, is_sent_once ? 1L : 0L);
}

Reply Transport::send(const Request& request, std::optional<std::chrono::milliseconds> left,
                      const std::stop_token& stop) const {
    if (stop.stop_requested()) throw Cancelled("the call was cancelled");
    CurlHandle handle = handles_.taken();
    const std::string url = base_ + request.target(left);
    const CurlList headers = headers_of(request, key_);
    Transfer transfer(request, most_of_answer_, stop);
    transfer.set_up(handle.get());
    set_limits(handle.get(), request, left);
    curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle.get(), CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(most_of_answer_));
    const CURLcode done = curl_easy_perform(handle.get());
    Reply reply = transfer.reply(handle.get());
    handles_.give_back(std::move(handle));
    if (stop.stop_requested() && done == CURLE_ABORTED_BY_CALLBACK) throw Cancelled("the call was cancelled");
    if (done == CURLE_OPERATION_TIMEDOUT && left) throw Timeout();
    if (transfer.is_too_large || done == CURLE_FILESIZE_EXCEEDED)
        throw AnswerTooLarge("the response exceeds " + std::to_string(most_of_answer_) + " bytes (max_response_bytes)");
    // Errors quote neither headers, nor bodies, nor the URL, which may contain a password.
    if (done != CURLE_OK)
        throw ConnectionFailed(request.method + " " + request.path + ": " + curl_easy_strerror(done));
    const std::string encoding = lower(reply.header("content-encoding"));
    if (!encoding.empty() && encoding != "identity")
        throw MalformedAnswer("the response is compressed, but the client requested it uncompressed");
    return reply;
}

}  // namespace gradserve
