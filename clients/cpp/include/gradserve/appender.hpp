#pragma once

#include <gradserve/json.hpp>
#include <gradserve/node.hpp>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradserve {

/// Base class of everything that nodes are appended to, by the name of their op.
class Appender {
public:
    /// Appends any op, including ops that are newer than this client. Throws InputError for operands of another graph,
    /// and for attributes that JSON cannot represent.
    Node op(std::string name, const std::vector<Node>& operands = {}, Attrs attrs = {});

protected:
    /// An attribute of a typed method. An absent attribute is not sent.
    struct Stated {
        const char* name;
        std::optional<Json> value;

        template <class T>
        Stated(const char* stated_name, const T& stated) : name(stated_name) {
            if constexpr (requires { stated.entries(); }) {
                if (stated.is_stated()) value = Json(*stated.entries());
            } else if constexpr (requires { stated.has_value(); }) {
                if (stated) value = Json(*stated);
            } else {
                value = Json(stated);
            }
        }
    };

    explicit Appender(std::shared_ptr<GraphState> state) : state_(std::move(state)) {}

    /// Appends an op whose last operands may be absent.
    Node typed(const char* name, std::initializer_list<std::optional<Node>> operands,
               std::initializer_list<Stated> attrs);
    Node typed(const char* name, const std::vector<Node>& operands, std::initializer_list<Stated> attrs);

    std::shared_ptr<GraphState> state_;
};

}  // namespace gradserve
