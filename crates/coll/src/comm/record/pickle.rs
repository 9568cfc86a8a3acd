//! Plain data as Python's `pickle` reads it: what PyTorch's analyser takes. Of the format, protocol 2 (Python's `pickletools` lists
//! its opcodes), a document of JSON needs few, and nothing that would run code when it is read.

use serde_json::Value;

/// A document.
pub(super) fn pickled(document: &Value) -> Vec<u8> {
    let mut bytes = vec![0x80, 2];
    put(&mut bytes, document);
    bytes.push(b'.');
    bytes
}

fn put(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(b'N'),
        Value::Bool(value) => bytes.push(if *value { 0x88 } else { 0x89 }),
        Value::Number(number) => match number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)) {
            Some(whole) => put_whole(bytes, whole),
            None => {
                bytes.push(b'G');
                bytes.extend(number.as_f64().unwrap_or(f64::NAN).to_be_bytes());
            }
        },
        Value::String(text) => put_text(bytes, text),
        Value::Array(values) => {
            bytes.extend(b"](");
            values.iter().for_each(|value| put(bytes, value));
            bytes.push(b'e');
        }
        Value::Object(pairs) => {
            bytes.extend(b"}(");
            for (name, value) in pairs {
                put_text(bytes, name);
                put(bytes, value);
            }
            bytes.push(b'u');
        }
    }
}

/// In four bytes, or, behind its length, in nine.
fn put_whole(bytes: &mut Vec<u8>, whole: i128) {
    if let Ok(narrow) = i32::try_from(whole) {
        bytes.push(b'J');
        bytes.extend(narrow.to_le_bytes());
    } else {
        bytes.extend([0x8a, 9]);
        bytes.extend(&whole.to_le_bytes()[..9]);
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Nothing in a record is anywhere near so long.
    let mut end = text.len().min(u32::MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    bytes.push(b'X');
    bytes.extend((end as u32).to_le_bytes());
    bytes.extend(&text.as_bytes()[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As `pickletools.dis` has them.
    #[test]
    fn every_kind_of_value_is_written_as_python_reads_it() {
        let of = |value: Value| pickled(&value);
        assert_eq!(of(json!(null)), b"\x80\x02N.");
        assert_eq!(of(json!([true, false])), b"\x80\x02](\x88\x89e.");
        assert_eq!(of(json!(-2)), b"\x80\x02J\xfe\xff\xff\xff.");
        assert_eq!(of(json!(1u64 << 40)), b"\x80\x02\x8a\x09\0\0\0\0\0\x01\0\0\0.");
        assert_eq!(of(json!(u64::MAX)), b"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0.");
        assert_eq!(of(json!(i64::MIN)), b"\x80\x02\x8a\x09\0\0\0\0\0\0\0\x80\xff.");
        assert_eq!(of(json!(1.5)), b"\x80\x02G\x3f\xf8\0\0\0\0\0\0.");
        assert_eq!(of(json!({ "é": [] })), b"\x80\x02}(X\x02\0\0\0\xc3\xa9](eu.");
    }
}
