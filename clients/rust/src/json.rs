//! Reading and writing JSON. Errors are input errors, and the caller adds the place.

use serde_json::{Map, Number, Value};

use crate::{Error, Result};

pub(crate) type Object = Map<String, Value>;

/// The largest integer that every JSON parser reads exactly.
pub(crate) const EXACT: i64 = 1 << 53;

pub(crate) fn object(text: &[u8]) -> Result<Object> {
    serde_json::from_slice(text).map_err(|_| Error::input("expected a JSON object"))
}

/// Returns a member that may be absent or null.
pub(crate) fn member<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// Reads a required member with `read`.
fn read<'a, T>(object: &'a Object, name: &str, what: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
    member(object, name).and_then(read).ok_or_else(|| Error::input(format!("{name}: expected {what}")))
}

/// Reads an optional member with `read`.
fn optional<'a, T>(
    object: &'a Object,
    name: &str,
    required: impl FnOnce(&'a Object, &str) -> Result<T>,
) -> Result<Option<T>> {
    match member(object, name) {
        None => Ok(None),
        Some(_) => required(object, name).map(Some),
    }
}

pub(crate) fn text<'a>(object: &'a Object, name: &str) -> Result<&'a str> {
    read(object, name, "a string", Value::as_str)
}

pub(crate) fn optional_text<'a>(object: &'a Object, name: &str) -> Result<Option<&'a str>> {
    optional(object, name, text)
}

pub(crate) fn whole(object: &Object, name: &str) -> Result<usize> {
    read(object, name, "a non-negative integer", whole_of)
}

pub(crate) fn optional_whole(object: &Object, name: &str) -> Result<Option<usize>> {
    optional(object, name, whole)
}

pub(crate) fn float(object: &Object, name: &str) -> Result<f64> {
    read(object, name, "a number", Value::as_f64)
}

pub(crate) fn truth(object: &Object, name: &str) -> Result<bool> {
    read(object, name, "true or false", Value::as_bool)
}

pub(crate) fn optional_truth(object: &Object, name: &str) -> Result<Option<bool>> {
    optional(object, name, truth)
}

/// Reads a list of non-negative integers: a shape, or ids of nodes.
pub(crate) fn wholes(object: &Object, name: &str) -> Result<Vec<usize>> {
    read(object, name, "a list of non-negative integers", |value| value.as_array()?.iter().map(whole_of).collect())
}

/// Reads a list of integers: a shape with free extents.
pub(crate) fn extents(object: &Object, name: &str) -> Result<Vec<i64>> {
    read(object, name, "a list of integers", |value| value.as_array()?.iter().map(Value::as_i64).collect())
}

pub(crate) fn optional_wholes(object: &Object, name: &str) -> Result<Option<Vec<usize>>> {
    optional(object, name, wholes)
}

pub(crate) fn objects<'a>(object: &'a Object, name: &str) -> Result<Vec<&'a Object>> {
    read(object, name, "a list of objects", |value| value.as_array()?.iter().map(Value::as_object).collect())
}

pub(crate) fn optional_objects<'a>(object: &'a Object, name: &str) -> Result<Option<Vec<&'a Object>>> {
    optional(object, name, objects)
}

pub(crate) fn inner<'a>(object: &'a Object, name: &str) -> Result<&'a Object> {
    read(object, name, "an object", Value::as_object)
}

pub(crate) fn optional_inner<'a>(object: &'a Object, name: &str) -> Result<Option<&'a Object>> {
    optional(object, name, inner)
}

fn whole_of(value: &Value) -> Option<usize> {
    value.as_u64()?.try_into().ok()
}

/// Writes a number: integers without a decimal point, except −0, because the JSON `-0` is an integer. None if JSON
/// cannot represent it.
pub(crate) fn number(number: f64) -> Option<Number> {
    let is_minus_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && number.abs() <= EXACT as f64 && !is_minus_zero {
        return Some((number as i64).into());
    }
    Number::from_f64(number)
}
