//! Tensors in JSON: numbers, or base64 of their bytes.

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::{json, Number, Value};

use crate::json::{self, Object};
use crate::memory::Memory;
use crate::{Complex, DType, Error, Float16, Result, Tensor};

/// Encodings of tensors. By default, tensors of 4 KiB or more are sent as safetensors, smaller ones as base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// JSON numbers, or base64 if JSON cannot represent an element.
    Json,
    /// Base64 of the bytes, in JSON.
    Base64,
    /// Bytes in a safetensors file.
    Safetensors,
}

/// The size from which tensors are sent as files by default.
const LARGE: usize = 4096;

impl Form {
    /// Returns the default encoding for tensors of this total size in bytes.
    pub fn default_for(bytes: usize) -> Self {
        if bytes >= LARGE {
            Form::Safetensors
        } else {
            Form::Base64
        }
    }

    /// Returns the value of the query parameter `encoding`, for JSON.
    pub(crate) fn encoding(self) -> Option<&'static str> {
        match self {
            Form::Json => Some("json"),
            Form::Base64 => Some("base64"),
            Form::Safetensors => None,
        }
    }
}

impl Tensor {
    /// Returns the tensor in the JSON form of the API: numbers with [`Form::Json`] if JSON can represent all of them,
    /// otherwise base64.
    pub fn to_json(&self, form: Form) -> String {
        self.to_value(form).to_string()
    }

    /// Reads a tensor in the JSON form of the API, as numbers or base64. Fails with
    /// [`Malformed`](crate::ErrorKind::Malformed).
    pub fn from_json(text: &str) -> Result<Self> {
        let members = json::object(text.as_bytes());
        members.and_then(|members| tensor_of(&members)).map_err(Error::of_the_answer)
    }

    pub(crate) fn to_value(&self, form: Form) -> Value {
        let (dtype, shape) = (self.dtype().as_str(), self.shape());
        match (form, self.numbers()) {
            (Form::Json, Some(data)) => json!({"dtype": dtype, "shape": shape, "data": data}),
            _ => {
                let data = BASE64_STANDARD.encode(self.bytes());
                json!({"dtype": dtype, "shape": shape, "data_b64": data})
            }
        }
    }

    /// Returns all elements, in which a complex number is its real part followed by its imaginary part. None if JSON
    /// cannot represent an element: NaN, infinities, integers beyond 2⁵³.
    fn numbers(&self) -> Option<Vec<Number>> {
        match self.dtype() {
            DType::Bool | DType::UInt8 => Some(self.bytes().iter().map(|&byte| byte.into()).collect()),
            DType::Int8 => self.mapped(|element: i8| Some(element.into())),
            DType::Int16 => self.mapped(|element: i16| Some(element.into())),
            DType::Int32 => self.mapped(|element: i32| Some(element.into())),
            DType::UInt32 => self.mapped(|element: u32| Some(element.into())),
            DType::Int64 => {
                self.mapped(|element: i64| (element.unsigned_abs() <= json::EXACT as u64).then(|| element.into()))
            }
            DType::Float16 => self.mapped(|element: Float16| json::number(element.into())),
            DType::Float32 => self.mapped(|element: f32| json::number(element.into())),
            DType::Float64 => self.mapped(json::number),
            DType::Complex64 => self.paired(|z: Complex<f32>| [z.re.into(), z.im.into()]),
            DType::Complex128 => self.paired(|z: Complex<f64>| [z.re, z.im]),
            DType::Other(_) => None,
        }
    }

    fn mapped<T: crate::Element>(&self, number: impl Fn(T) -> Option<Number>) -> Option<Vec<Number>> {
        let elements = self.elements::<T>().ok()?;
        elements.iter().map(|&element| number(element)).collect()
    }

    fn paired<T: crate::Element>(&self, parts: impl Fn(T) -> [f64; 2]) -> Option<Vec<Number>> {
        let elements = self.elements::<T>().ok()?;
        elements.iter().flat_map(|&element| parts(element)).map(json::number).collect()
    }
}

/// Fails with an input error. If the value is part of a response, the caller converts the error.
pub(crate) fn tensor_of(members: &Object) -> Result<Tensor> {
    let dtype = DType::from(json::text(members, "dtype")?);
    dtype.element_type()?;
    let shape = json::wholes(members, "shape")?;
    let payload = payload_of(members, &dtype)?;
    Tensor::from_memory(dtype, shape, payload)
}

/// Returns the bytes of a tensor's elements, from numbers or base64.
fn payload_of(members: &Object, dtype: &DType) -> Result<Memory> {
    let numbers = match json::member(members, "data") {
        None => &[][..],
        Some(Value::Array(numbers)) => numbers,
        Some(_) => return Err(Error::input("data: expected a list of numbers")),
    };
    let encoded = json::optional_text(members, "data_b64")?.unwrap_or_default();
    match (numbers, encoded) {
        ([_, ..], text) if !text.is_empty() => Err(Error::input("the tensor has both data and data_b64")),
        ([_, ..], _) => numbers_of(numbers, dtype),
        ([], text) => match BASE64_STANDARD.decode(text) {
            Ok(bytes) => Ok(Memory::of(bytes)),
            Err(_) => Err(Error::input("data_b64 is not valid base64")),
        },
    }
}

fn numbers_of(numbers: &[Value], dtype: &DType) -> Result<Memory> {
    match dtype {
        DType::Bool => elements(numbers, dtype, |value| {
            whole_of(value).and_then(|whole| u8::try_from(whole).ok()).filter(|&byte| byte < 2)
        }),
        DType::UInt8 => elements(numbers, dtype, |value| u8::try_from(whole_of(value)?).ok()),
        DType::Int8 => elements(numbers, dtype, |value| i8::try_from(whole_of(value)?).ok()),
        DType::Int16 => elements(numbers, dtype, |value| i16::try_from(whole_of(value)?).ok()),
        DType::Int32 => elements(numbers, dtype, |value| i32::try_from(whole_of(value)?).ok()),
        DType::UInt32 => elements(numbers, dtype, |value| u32::try_from(whole_of(value)?).ok()),
        DType::Int64 => elements(numbers, dtype, whole_of),
        DType::Float16 => elements(numbers, dtype, |value| {
            let rounded = Float16::from_f64(value.as_f64()?);
            rounded.to_f64().is_finite().then_some(rounded)
        }),
        DType::Float32 => elements(numbers, dtype, |value| {
            let rounded = value.as_f64()? as f32;
            rounded.is_finite().then_some(rounded)
        }),
        DType::Complex64 | DType::Complex128 => numbers_of(numbers, &dtype.parts()),
        DType::Float64 | DType::Other(_) => elements(numbers, dtype, Value::as_f64),
    }
}

fn elements<T: crate::Element>(
    numbers: &[Value],
    dtype: &DType,
    element: impl Fn(&Value) -> Option<T>,
) -> Result<Memory> {
    let read = |value| element(value).ok_or_else(|| Error::input(format!("{value} is not a valid {dtype}")));
    let elements: Vec<T> = numbers.iter().map(read).collect::<Result<_>>()?;
    Ok(Memory::of(elements))
}

/// Reads an integer, which may be written with a decimal point.
fn whole_of(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|_| !value.is_u64())?;
        let is_whole = number.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&number);
        is_whole.then_some(number as i64)
    })
}
