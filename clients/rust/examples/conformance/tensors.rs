//! Tensors as their bits, and files as their bytes.

use gradserve_client::{Form, Result, Tensor};
use serde_json::{json, Value};

pub fn read(bits: &Value) -> Result<Tensor> {
    let shape: Vec<usize> = places(&bits["shape"]);
    Tensor::from_bytes(bits["dtype"].as_str().unwrap_or_default(), shape, unhex(&bits["hex"]))
}

pub fn bits(tensor: &Tensor) -> Value {
    json!({"dtype": tensor.dtype().as_str(), "shape": tensor.shape(), "hex": hex(tensor.bytes())})
}

/// Reads a list of positions, or of extents.
pub fn places(list: &Value) -> Vec<usize> {
    list.as_array().into_iter().flatten().filter_map(|each| Some(each.as_u64()? as usize)).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).filter_map(byte).collect()
}

/// None for the client's default.
pub fn form(stated: &Value) -> Option<Form> {
    match stated.as_str()? {
        "json" => Some(Form::Json),
        "base64" => Some(Form::Base64),
        "safetensors" | "binary" => Some(Form::Safetensors),
        _ => None,
    }
}
