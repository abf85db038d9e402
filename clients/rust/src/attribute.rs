//! Attributes of ops: conversions from Rust values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{json, DType, Error, Form, Graph, GraphFunction, Result, Tensor};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A tensor, sent in the form of the request.
    Tensor(Tensor),
    /// A number, which must be finite.
    Float(f64),
    /// A function of the same graph.
    Function(GraphFunction),
    /// Several values.
    List(Vec<Attribute>),
    /// Any JSON value.
    Json(Value),
}

impl Attribute {
    /// Returns the value as a graph stores it: functions become their indices. Fails for a function of another graph,
    /// and for a number that JSON cannot represent.
    fn settled(self, graph: &Graph) -> Result<Attribute> {
        match self {
            Attribute::Float(number) if !number.is_finite() => {
                Err(Error::input(format!("JSON cannot represent {number}")))
            }
            Attribute::Function(function) => graph.owned_index(&function).map(Attribute::from),
            Attribute::List(entries) => {
                entries.into_iter().map(|entry| entry.settled(graph)).collect::<Result<_>>().map(Attribute::List)
            }
            value => Ok(value),
        }
    }

    /// Returns the value as JSON. Numbers that JSON cannot represent were rejected before.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Attribute::Tensor(tensor) => tensor.to_value(Form::Base64),
            Attribute::Float(number) => json::number(*number).map_or(Value::Null, Value::Number),
            Attribute::Function(function) => function.index().into(),
            Attribute::List(entries) => entries.iter().map(Attribute::to_json).collect(),
            Attribute::Json(value) => value.clone(),
        }
    }
}

macro_rules! attributes {
    ($($plain:ty),*) => {$(
        impl From<$plain> for Attribute {
            fn from(value: $plain) -> Self {
                Attribute::Json(value.into())
            }
        }
    )*};
}

attributes!(bool, i32, i64, u32, u64, usize, &str, String, Value, Map<String, Value>);

impl From<f64> for Attribute {
    fn from(number: f64) -> Self {
        Attribute::Float(number)
    }
}

impl From<f32> for Attribute {
    fn from(number: f32) -> Self {
        Attribute::Float(number.into())
    }
}

impl From<DType> for Attribute {
    fn from(dtype: DType) -> Self {
        dtype.as_str().into()
    }
}

impl From<GraphFunction> for Attribute {
    fn from(function: GraphFunction) -> Self {
        Attribute::Function(function)
    }
}

impl From<&GraphFunction> for Attribute {
    fn from(function: &GraphFunction) -> Self {
        Attribute::Function(function.clone())
    }
}

impl From<Tensor> for Attribute {
    fn from(tensor: Tensor) -> Self {
        Attribute::Tensor(tensor)
    }
}

impl From<&Tensor> for Attribute {
    fn from(tensor: &Tensor) -> Self {
        Attribute::Tensor(tensor.clone())
    }
}

impl<A: Into<Attribute>> From<Vec<A>> for Attribute {
    fn from(entries: Vec<A>) -> Self {
        Attribute::List(entries.into_iter().map(Into::into).collect())
    }
}

impl<A: Into<Attribute>, const N: usize> From<[A; N]> for Attribute {
    fn from(entries: [A; N]) -> Self {
        Vec::from(entries).into()
    }
}

/// A number in the dtype of its op. Integers keep all of their digits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A number, which must be finite.
    Float(f64),
}

impl From<i32> for Number {
    fn from(number: i32) -> Self {
        Number::Int(number.into())
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Number::Int(number)
    }
}

impl From<f32> for Number {
    fn from(number: f32) -> Self {
        Number::Float(number.into())
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Number::Float(number)
    }
}

impl From<Number> for Attribute {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(whole) => whole.into(),
            Number::Float(float) => float.into(),
        }
    }
}

/// Attributes of an op by name: `Attrs::new().with("axis", 0)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs(pub(crate) BTreeMap<String, Attribute>);

impl Attrs {
    /// Returns an empty set of attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Attribute>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Returns the attributes as a graph stores them.
    pub(crate) fn settled(self, graph: &Graph) -> Result<Self> {
        let settled = self.0.into_iter().map(|(name, value)| match value.settled(graph) {
            Ok(value) => Ok((name, value)),
            Err(error) => Err(error.within(format_args!("attribute {name}"))),
        });
        settled.collect::<Result<_>>().map(Self)
    }
}
