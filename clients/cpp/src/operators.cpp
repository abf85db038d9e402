#include <gradserve/graph.hpp>

namespace gradserve {

Node operator-(const Node& x) { return x.graph().neg(x); }

Node operator+(const Node& a, const Node& b) { return a.graph().add(a, b); }

Node operator-(const Node& a, const Node& b) { return a.graph().sub(a, b); }

Node operator*(const Node& a, const Node& b) { return a.graph().mul(a, b); }

Node operator/(const Node& a, const Node& b) { return a.graph().div(a, b); }

Node operator+(const Node& x, double scalar) { return x.graph().add_scalar(x, scalar); }

Node operator-(const Node& x, double scalar) { return x.graph().add_scalar(x, -scalar); }

Node operator*(const Node& x, double scalar) { return x.graph().mul_scalar(x, scalar); }

Node operator/(const Node& x, double scalar) { return x.graph().div_scalar(x, scalar); }

Node operator+(double scalar, const Node& x) { return x + scalar; }

Node operator-(double scalar, const Node& x) { return -x + scalar; }

Node operator*(double scalar, const Node& x) { return x * scalar; }

Node operator/(double scalar, const Node& x) {
    const Node reciprocal = x.graph().reciprocal(x);
    return scalar == 1 ? reciprocal : reciprocal * scalar;
}

}  // namespace gradserve
