//! Tensors: whose memory they have, what they refuse, and how files and JSON hold them.

use gradserve_client::{Complex, DType, ErrorKind, Float16, Form, Safetensors, Tensor};

/// Whether the elements of a tensor are where its bytes are.
fn are_in_place(elements: &[f64], tensor: &Tensor) -> bool {
    elements.as_ptr().cast() == tensor.bytes().as_ptr()
}

#[test]
fn vectors_become_tensors_where_they_are() {
    let elements = vec![1.0f32, 2.0, 3.0, 4.0];
    let place = elements.as_ptr();
    let tensor = Tensor::new([2, 2], elements).unwrap();
    assert_eq!(tensor.elements::<f32>().unwrap().as_ptr(), place);
    assert_eq!(tensor.clone().bytes().as_ptr(), place.cast());
}

#[test]
fn tensors_of_a_file_share_its_memory() {
    let tensor = Tensor::from(vec![1.5, -0.0]);
    let file = Safetensors::new([("t".to_owned(), tensor.clone()), ("other".to_owned(), Tensor::from(vec![true]))]);
    let file = file.encode();
    let memory = file.as_ptr_range();
    let decoded = Safetensors::decode(file).unwrap();
    assert!(memory.contains(&decoded.tensors["t"].bytes().as_ptr()));
    assert!(are_in_place(&decoded.tensors["t"].elements().unwrap(), &decoded.tensors["t"]));
    assert_eq!(decoded.tensors["t"], tensor);
    assert_eq!(decoded.tensors["other"].elements::<bool>().unwrap(), [true].as_slice());
}

#[test]
fn elements_that_are_not_aligned_are_copied() {
    let header = br#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}} "#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header);
    file.push(7);
    file.extend_from_slice(&1.5f64.to_le_bytes());
    let decoded = Safetensors::decode(file).unwrap();
    let tensor = &decoded.tensors["b"];
    let elements = tensor.elements().unwrap();
    assert_eq!(are_in_place(&elements, tensor), tensor.bytes().as_ptr().cast::<f64>().is_aligned());
    assert_eq!(elements, [1.5].as_slice());
}

#[test]
fn elements_are_of_the_type_that_is_asked_for() {
    let tensor = Tensor::from(vec![1i32, 2]);
    assert_eq!(tensor.elements::<i64>().unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(tensor.item::<i32>().unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(Tensor::from(Float16::from_bits(0x3c00)).item::<Float16>().unwrap(), Float16::from_f64(1.0));
}

#[test]
fn all_types_of_elements_are_dtypes() {
    let tensors: [(&str, Tensor); 12] = [
        ("bool", true.into()),
        ("int8", (-1i8).into()),
        ("uint8", 255u8.into()),
        ("int32", (-1i32).into()),
        ("uint32", u32::MAX.into()),
        ("int64", (-1i64).into()),
        ("float16", Float16::from_f64(1.0).into()),
        ("float32", 1f32.into()),
        ("float64", 1f64.into()),
        ("int16", i16::MIN.into()),
        ("complex64", Complex::new(1f32, -2.0).into()),
        ("complex128", Complex::new(-0.0, 0.1).into()),
    ];
    for (word, tensor) in tensors {
        assert_eq!(*tensor.dtype(), DType::from(word));
        assert_eq!(tensor.to_string(), format!("{word}[]"));
        for form in [Form::Json, Form::Base64] {
            assert_eq!(Tensor::from_json(&tensor.to_json(form)).unwrap(), tensor);
        }
    }
}

#[test]
fn complex_numbers_travel_as_their_parts() {
    let elements = vec![Complex::new(1.0f32, -2.0), Complex::new(-0.0, 0.5)];
    let place = elements.as_ptr();
    let tensor = Tensor::new([1, 2], elements).unwrap();
    assert_eq!(tensor.elements::<Complex<f32>>().unwrap().as_ptr(), place);
    let json = tensor.to_json(Form::Json);
    assert!(json.contains("[1,-2,-0.0,0.5]"), "{json}");
    assert_eq!(Tensor::from_json(&json).unwrap(), tensor);
    assert!(!Tensor::from(Complex::new(0.0, f64::NAN)).to_json(Form::Json).contains(r#""data":"#));
    let mut file = Safetensors::new([("é".to_owned(), tensor), ("x".to_owned(), Tensor::from(1.0))]);
    file.metadata.insert("for".into(), "all".into());
    let bytes = file.encode();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.contains(r#""complex":"[\"é\"]""#) && text.contains("[1,2,2]"), "{text}");
    assert_eq!(Safetensors::decode(bytes).unwrap(), file);
    assert_eq!(Complex::from((1.5, -2.0)).to_string(), "1.5-2i");
}

#[test]
fn what_is_said_to_be_complex_has_a_last_axis_of_two() {
    let file = |complex: &str, dtype: &str, shape: &str| {
        let header = format!(
            r#"{{"__metadata__":{{"complex":{complex}}},"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,16]}}}}"#
        );
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(&[0; 16]);
        Safetensors::decode(file)
    };
    let named = r#""[\"t\"]""#;
    assert_eq!(file(named, "F64", "[2]").unwrap().tensors["t"].to_string(), "complex128[]");
    assert_eq!(file(r#""[]""#, "C64", "[2]").unwrap().tensors["t"].to_string(), "complex64[2]");
    for (complex, dtype, shape) in [
        (named, "F64", "[2,1]"),
        (named, "I64", "[1,2]"),
        (named, "F16", "[4,2]"),
        (named, "C64", "[2]"),
        (r#""[\"u\"]""#, "F64", "[2]"),
        (r#""t""#, "F64", "[2]"),
        (r#""[null]""#, "F64", "[2]"),
        (r#""null""#, "F64", "[2]"),
        (r#"["t"]"#, "F64", "[2]"),
    ] {
        assert_eq!(file(complex, dtype, shape).unwrap_err().kind(), ErrorKind::Malformed, "{complex} {dtype}{shape}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    for shape in [vec![], vec![2], vec![4], vec![3, 1 << 62, 1 << 62], vec![1; 65]] {
        assert_eq!(Tensor::new(shape, vec![1u8, 2, 3]).unwrap_err().kind(), ErrorKind::Input);
    }
    // a product that is 4, but for 2⁶⁴
    assert!(Tensor::new([4, (1 << 62) + 1], vec![1u8, 2, 3, 4]).is_err());
    assert_eq!(Tensor::new([0, 1 << 48], Vec::<i64>::new()).unwrap().len(), 0);
    for shape in [vec![1 << 62, 0], vec![1 << 62, 1 << 62, 0], vec![0, 1 << 62, 1 << 62], vec![1 << 50, 0]] {
        assert_eq!(Tensor::new(shape, Vec::<i64>::new()).unwrap_err().kind(), ErrorKind::Input);
    }
    let text = r#"{"dtype": "float64", "shape": [4611686018427387904, 0], "data": []}"#;
    assert_eq!(Tensor::from_json(text).unwrap_err().kind(), ErrorKind::Malformed);
}

#[test]
fn what_is_no_bool_is_refused() {
    assert!(Tensor::from_bytes(DType::Bool, [2], vec![0, 1]).is_ok());
    assert_eq!(Tensor::from_bytes(DType::Bool, [2], vec![0, 2]).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn elements_are_not_shown() {
    let shown = format!("{:?}", Tensor::from(vec![12345.0]));
    assert_eq!(shown, "Tensor(float64[1])");
}
