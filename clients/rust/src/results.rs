//! Results by node.

use std::ops::Index;

use crate::{Error, Node, Result, Tensor};

/// Results by node, in the order of the request.
///
/// Indexing by a node, a name or a position panics if there is no such result, as in a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Results<T>(pub(crate) Vec<(Node, T)>);

impl<T> Default for Results<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Results<T> {
    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the result of a node.
    pub fn get(&self, node: &Node) -> Option<&T> {
        self.iter().find(|(each, _)| *each == node).map(|(_, result)| result)
    }

    /// Returns the result of the first node with this name.
    pub fn named(&self, name: &str) -> Option<&T> {
        self.iter().find(|(each, _)| each.name().as_deref() == Some(name)).map(|(_, result)| result)
    }

    /// Returns the result at a position in the order of the request.
    pub fn at(&self, place: usize) -> Option<&T> {
        self.0.get(place).map(|(_, result)| result)
    }

    /// Returns the only result. Fails if there is not exactly one.
    pub fn only(&self) -> Result<&T> {
        match self.0.as_slice() {
            [(_, result)] => Ok(result),
            all => Err(Error::input(format!("the answer has {} results, not one", all.len()))),
        }
    }

    /// Iterates over the nodes and their results, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = (&Node, &T)> {
        self.0.iter().map(|(node, result)| (node, result))
    }
}

impl<T> Index<&Node> for Results<T> {
    type Output = T;

    fn index(&self, node: &Node) -> &T {
        self.get(node).unwrap_or_else(|| panic!("the answer has no result for {node}"))
    }
}

impl<T> Index<&str> for Results<T> {
    type Output = T;

    fn index(&self, name: &str) -> &T {
        self.named(name).unwrap_or_else(|| panic!("the answer has no result for {name:?}"))
    }
}

impl<T> Index<usize> for Results<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.0[place].1
    }
}

/// Results by pairs of nodes: an output and a node of `wrt`, or a row and a column.
///
/// Indexing by a pair of nodes or names, or by a position, panics if there is no such result, as in a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks(pub(crate) Vec<([Node; 2], Tensor)>);

impl Blocks {
    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the block of two nodes.
    pub fn get(&self, first: &Node, second: &Node) -> Option<&Tensor> {
        let mut all = self.iter();
        all.find(|(pair, _)| pair[0] == *first && pair[1] == *second).map(|(_, block)| block)
    }

    /// Returns the block of the first pair of nodes with these names.
    pub fn named(&self, first: &str, second: &str) -> Option<&Tensor> {
        let names = [Some(first.to_owned()), Some(second.to_owned())];
        let mut all = self.iter();
        all.find(|(pair, _)| pair.each_ref().map(Node::name) == names).map(|(_, block)| block)
    }

    /// Returns the block at a position in the order of the response.
    pub fn at(&self, place: usize) -> Option<&Tensor> {
        self.0.get(place).map(|(_, block)| block)
    }

    /// Iterates over the pairs of nodes and their blocks, in the order of the response.
    pub fn iter(&self) -> impl Iterator<Item = (&[Node; 2], &Tensor)> {
        self.0.iter().map(|(pair, block)| (pair, block))
    }
}

impl Index<(&Node, &Node)> for Blocks {
    type Output = Tensor;

    fn index(&self, (first, second): (&Node, &Node)) -> &Tensor {
        self.get(first, second).unwrap_or_else(|| panic!("the answer has no block for {first} and {second}"))
    }
}

impl Index<(&str, &str)> for Blocks {
    type Output = Tensor;

    fn index(&self, (first, second): (&str, &str)) -> &Tensor {
        self.named(first, second).unwrap_or_else(|| panic!("the answer has no block for {first:?} and {second:?}"))
    }
}

impl Index<usize> for Blocks {
    type Output = Tensor;

    fn index(&self, place: usize) -> &Tensor {
        &self.0[place].1
    }
}
