//! Numbers and runs of bytes, as the shipped files have them. What is cut off or damaged reads as nothing.

/// A run of bytes behind its length.
pub(super) fn block<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (block, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(block)
}

/// A number in LEB128: seven bits a byte, the lowest first.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(super) fn put_block(bytes: &mut Vec<u8>, block: &[u8]) {
    put(bytes, block.len() as u64);
    bytes.extend(block);
}

pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read_and_what_is_cut_off_is_not() {
        let mut bytes = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::MAX];
        numbers.iter().for_each(|&number| put(&mut bytes, number));
        put_block(&mut bytes, b"block");
        let mut rest: &[u8] = &bytes;
        assert!(numbers.iter().all(|&expected| number(&mut rest) == Some(expected)));
        assert_eq!((block(&mut rest), rest.len()), (Some(&b"block"[..]), 0));
        assert_eq!(number(&mut rest), None);
        assert_eq!(block(&mut &[5, b'b'][..]), None);
        assert_eq!(number(&mut &[0x80; 20][..]), None);
    }
}
