//! Arithmetic operators between nodes, and between nodes and numbers, which take the dtype of the node.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use crate::Node;

/// Implements an operator between nodes, owned or borrowed.
macro_rules! between_nodes {
    ($($operator:ident $method:ident;)*) => {$(
        between_nodes!(@ $operator $method Node, Node);
        between_nodes!(@ $operator $method Node, &Node);
        between_nodes!(@ $operator $method &Node, Node);
        between_nodes!(@ $operator $method &Node, &Node);
    )*};
    (@ $operator:ident $method:ident $left:ty, $right:ty) => {
        impl $operator<$right> for $left {
            type Output = Node;
            fn $method(self, right: $right) -> Node {
                Node::$method(&self, &right)
            }
        }
    };
}

between_nodes! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

macro_rules! remainder {
    ($($left:ty, $right:ty;)*) => {$(
        impl Rem<$right> for $left {
            type Output = Node;
            fn rem(self, right: $right) -> Node {
                self.mod_(&right)
            }
        }
    )*};
}

remainder! {
    Node, Node;
    Node, &Node;
    &Node, Node;
    &Node, &Node;
}

/// Implements an operator between a node and a number, in either order.
macro_rules! with_numbers {
    ($($operator:ident $method:ident: $right:expr, $left:expr;)*) => {$(
        with_numbers!(@ $operator $method Node: $right, $left);
        with_numbers!(@ $operator $method &Node: $right, $left);
    )*};
    (@ $operator:ident $method:ident $node:ty: $right:expr, $left:expr) => {
        impl $operator<f64> for $node {
            type Output = Node;
            fn $method(self, number: f64) -> Node {
                let computed: fn(&Node, f64) -> Node = $right;
                computed(&self, number)
            }
        }
        impl $operator<$node> for f64 {
            type Output = Node;
            fn $method(self, node: $node) -> Node {
                let computed: fn(&Node, f64) -> Node = $left;
                computed(&node, self)
            }
        }
    };
}

with_numbers! {
    Add add: Node::add_scalar, Node::add_scalar;
    Sub sub: Node::sub_scalar, |node, number| node.neg().add_scalar(number);
    Mul mul: Node::mul_scalar, Node::mul_scalar;
    Div div: Node::div_scalar, |node, number| node.reciprocal().mul_scalar(number);
}

impl Neg for Node {
    type Output = Node;
    fn neg(self) -> Node {
        Node::neg(&self)
    }
}

impl Neg for &Node {
    type Output = Node;
    fn neg(self) -> Node {
        Node::neg(self)
    }
}
