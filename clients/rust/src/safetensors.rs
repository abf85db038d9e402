//! The [safetensors format](https://github.com/huggingface/safetensors#format): a JSON header, followed by the bytes of
//! the tensors, which are read without a copy.
//!
//! A complex tensor is stored as its real and imaginary parts along a last axis of 2. `__metadata__.complex` lists
//! these tensors.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{json, Value};

use crate::dtype::ElementKind;
use crate::json::{self, Object};
use crate::memory::Memory;
use crate::{DType, Error, Result, Tensor};

const METADATA: &str = "__metadata__";
const COMPLEX: &str = "complex";
const LENGTH: usize = size_of::<u64>();
/// The maximum size of a header: the limit of the reference implementation.
const MOST_OF_HEADER: u64 = 100_000_000;

/// The content of a safetensors file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Safetensors {
    /// The tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// The metadata by name, without the list of complex tensors: the dtypes of the tensors tell which are complex.
    pub metadata: BTreeMap<String, String>,
}

impl Safetensors {
    /// Creates a file of these tensors.
    pub fn new(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self { tensors: tensors.into_iter().collect(), metadata: BTreeMap::new() }
    }

    /// Decodes a file. The tensors share its memory. Fails with [`Malformed`](crate::ErrorKind::Malformed).
    pub fn decode(file: Vec<u8>) -> Result<Self> {
        decoded(&Memory::of(file)).map_err(Error::of_the_answer)
    }

    /// Returns the tensor with this name. Fails with [`Malformed`](crate::ErrorKind::Malformed) if there is none.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).ok_or_else(|| Error::malformed(format!("the file has no tensor named {name:?}")))
    }

    /// Returns the file.
    pub fn encode(&self) -> Vec<u8> {
        let pieces = self.pieces();
        pieces.iter().map(Memory::bytes).collect::<Vec<_>>().concat()
    }

    /// Returns the file in pieces: its header, and the bytes of the tensors, which are not copied.
    pub(crate) fn pieces(&self) -> Vec<Memory> {
        let mut entries: Vec<_> = self.tensors.iter().collect();
        // Tensors with wide elements come first, so that all are aligned.
        entries.sort_by_key(|(_, tensor)| std::cmp::Reverse(size_of_element(tensor)));
        let mut header = Object::new();
        let mut metadata = self.metadata.clone();
        let complex: Vec<_> = entries.iter().filter(|(_, tensor)| is_complex(tensor)).map(|(name, _)| name).collect();
        if !complex.is_empty() {
            metadata.insert(COMPLEX.into(), json!(complex).to_string());
        }
        if !metadata.is_empty() {
            header.insert(METADATA.into(), json!(metadata));
        }
        let mut end = 0;
        for (name, tensor) in &entries {
            let start = end;
            end += tensor.bytes().len();
            header.insert((*name).clone(), entry_for(tensor, start..end));
        }
        let data = entries.iter().map(|(_, tensor)| tensor.memory().clone());
        std::iter::once(framed(header)).chain(data).collect()
    }
}

fn size_of_element(tensor: &Tensor) -> usize {
    tensor.dtype().element_type().map_or(0, |element| element.size)
}

fn is_complex(tensor: &Tensor) -> bool {
    tensor.dtype().element_type().is_ok_and(|element| element.kind == ElementKind::Complex)
}

fn entry_for(tensor: &Tensor, place: Range<usize>) -> Value {
    let spelled = tensor.dtype().parts().element_type().map_or("", |element| element.safetensors);
    let mut shape = tensor.shape().to_vec();
    shape.extend(is_complex(tensor).then_some(2));
    json!({"dtype": spelled, "shape": shape, "data_offsets": [place.start, place.end]})
}

/// Returns the header preceded by its length, padded with spaces so that the data is aligned.
fn framed(header: Object) -> Memory {
    let mut text = Value::Object(header).to_string();
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(LENGTH) - text.len()));
    let length = (text.len() as u64).to_le_bytes();
    Memory::of([&length, text.as_bytes()].concat())
}

/// Fails with an input error. If the value is part of a response, the caller converts the error.
pub(crate) fn decoded(file: &Memory) -> Result<Safetensors> {
    let (mut header, data) = parts_of(file)?;
    let mut metadata = metadata_of(header.remove(METADATA))?;
    let complex = complex_names(metadata.remove(COMPLEX), &header)?;
    let mut entries = header
        .iter()
        .map(|(name, stated)| {
            let entry = entry_of(name, stated);
            let whole = entry.and_then(|entry| if complex.contains(name) { entry.joined() } else { Ok(entry) });
            whole.map_err(|error| error.within(format_args!("{name:?} of the file")))
        })
        .collect::<Result<Vec<_>>>()?;
    check_that_they_fill(&mut entries, data.len())?;
    let tensors = entries.into_iter().map(|entry| {
        let tensor = Tensor::from_memory(entry.dtype, entry.shape, data.part(entry.place))
            .map_err(|error| error.within(format_args!("{:?} of the file", entry.name)))?;
        Ok((entry.name.to_owned(), tensor))
    });
    Ok(Safetensors { tensors: tensors.collect::<Result<_>>()?, metadata })
}

/// Returns the header and the data of a file.
fn parts_of(file: &Memory) -> Result<(Object, Memory)> {
    let Some((length, rest)) = file.bytes().split_first_chunk::<LENGTH>() else {
        return Err(Error::input("the file ends before the end of its header"));
    };
    let length = u64::from_le_bytes(*length);
    if length > MOST_OF_HEADER {
        return Err(Error::input(format!("the header of the file has {length} bytes; the limit is {MOST_OF_HEADER}")));
    }
    let length = length as usize;
    let Some(text) = rest.get(..length) else {
        return Err(Error::input("the file ends before the end of its header"));
    };
    let header = json::object(text).map_err(|error| error.within("the header of the file"))?;
    Ok((header, file.part(LENGTH + length..file.len())))
}

fn metadata_of(stated: Option<Value>) -> Result<BTreeMap<String, String>> {
    match stated {
        None => Ok(BTreeMap::new()),
        Some(stated) => serde_json::from_value(stated)
            .map_err(|_| Error::input(format!("{METADATA} of the file must contain only strings"))),
    }
}

/// Returns the names of the complex tensors.
fn complex_names(stated: Option<String>, header: &Object) -> Result<BTreeSet<String>> {
    let Some(text) = stated else {
        return Ok(BTreeSet::new());
    };
    let names: BTreeSet<String> = serde_json::from_str(&text)
        .map_err(|_| Error::input(format!("{METADATA}.{COMPLEX} of the file must be a JSON list of names")))?;
    match names.iter().find(|name| !header.contains_key(name.as_str())) {
        Some(absent) => {
            Err(Error::input(format!("{METADATA}.{COMPLEX} of the file lists {absent:?}, which is not in the file")))
        }
        None => Ok(names),
    }
}

/// The location of a tensor in the file.
struct Entry<'a> {
    name: &'a str,
    dtype: DType,
    shape: Vec<usize>,
    place: Range<usize>,
}

impl Entry<'_> {
    /// Returns the same location, with the last axis of parts as complex numbers.
    fn joined(mut self) -> Result<Self> {
        match (self.dtype.of_parts(), self.shape.pop()) {
            (Some(dtype), Some(2)) => Ok(Self { dtype, ..self }),
            _ => Err(Error::input("it is listed as complex, but is not F32 or F64 with a last axis of 2")),
        }
    }
}

fn entry_of<'a>(name: &'a str, stated: &Value) -> Result<Entry<'a>> {
    let Some(members) = stated.as_object() else {
        return Err(Error::input("expected an object"));
    };
    let spelled = json::text(members, "dtype")?;
    let Some(dtype) = DType::from_safetensors(spelled) else {
        return Err(Error::input(format!("unsupported dtype {spelled:?}")));
    };
    match *json::wholes(members, "data_offsets")? {
        [start, end] if start <= end => {
            Ok(Entry { name, dtype, shape: json::wholes(members, "shape")?, place: start..end })
        }
        _ => Err(Error::input("data_offsets must be [start, end] with 0 <= start <= end")),
    }
}

/// Checks that the tensors cover the data without gaps or overlaps.
fn check_that_they_fill(entries: &mut [Entry<'_>], length: usize) -> Result<()> {
    entries.sort_by_key(|entry| (entry.place.start, entry.place.end));
    let mut end = 0;
    for entry in entries.iter() {
        if entry.place.start != end {
            return Err(Error::input("the tensors of the file overlap or leave gaps"));
        }
        end = entry.place.end;
    }
    if end != length {
        return Err(Error::input(format!("the file has {length} bytes of data, but its tensors have {end}")));
    }
    Ok(())
}
