#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

/// A request as a test's server sees it, and what it answers.
class Seen {
public:
    Seen(int socket, std::string text) : socket_(socket), text_(std::move(text)) {}

    /// Such as “POST /v1/forward?timeout_ms=60000”.
    [[nodiscard]] std::string line() const { return text_.substr(0, text_.find(" HTTP/")); }
    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] std::string body() const { return text_.substr(text_.find("\r\n\r\n") + 4); }

    void answer(int status, const std::string& body, const std::string& headers = "") {
        const std::string media = status >= 400 ? "application/problem+json" : "application/json";
        write("HTTP/1.1 " + std::to_string(status) + " -\r\nContent-Type: " + media + "\r\n" + headers +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }

    /// False where the client is gone.
    bool write(const std::string& bytes) {
        return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }

    void close() { shutdown(socket_, SHUT_RDWR); }

private:
    int socket_;
    std::string text_;
};

/// A server on this machine, with a thread for each connection. Requests come one after the other on each.
class Server {
public:
    explicit Server(std::function<void(Seen&)> handle) : handle_(std::move(handle)) {
        socket_ = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_, 64) != 0 ||
            getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error("cannot bind a port");
        url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        accepting_ = std::jthread([this] { accept_all(); });
    }

    ~Server() {
        shutdown(socket_, SHUT_RDWR);
        accepting_.join();
        close(socket_);
        const std::scoped_lock lock(mutex_);
        for (const auto& [thread, connection] : connections_) shutdown(connection, SHUT_RDWR);
    }

    [[nodiscard]] const std::string& url() const { return url_; }

private:
    void accept_all() {
        for (int connection = 0; (connection = accept(socket_, nullptr, nullptr)) >= 0;) {
            const std::scoped_lock lock(mutex_);
            connections_.emplace_back(std::jthread([this, connection] { serve(connection); }), connection);
        }
    }

    void serve(int connection) {
        for (std::string text; !(text = request(connection)).empty();) {
            Seen seen(connection, text);
            handle_(seen);
        }
        shutdown(connection, SHUT_RDWR);
    }

    static std::string request(int connection) {
        std::string text;
        std::size_t whole = std::string::npos;
        while (text.size() < whole) {
            char bytes[4096];
            const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
            if (count <= 0) return "";
            text.append(bytes, static_cast<std::size_t>(count));
            const std::size_t end = text.find("\r\n\r\n");
            if (whole != text.npos || end == text.npos) continue;
            const std::size_t length = text.find("Content-Length: ");
            whole = end + 4 + (length < end ? std::stoul(text.substr(length + 16)) : 0);
        }
        return text;
    }

    std::function<void(Seen&)> handle_;
    int socket_ = -1;
    std::string url_;
    std::mutex mutex_;
    std::list<std::pair<std::jthread, int>> connections_;
    std::jthread accepting_;
};
