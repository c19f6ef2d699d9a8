//! Bytes as they travel in JSON: base64 with padding, RFC 4648.

use std::borrow::Cow;

use serde::{de, Deserialize, Deserializer, Serializer};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The number of each letter; 64 for what is none.
const NUMBERS: [u8; 256] = {
    let mut numbers = [64; 256];
    let mut i = 0;
    while i < 64 {
        numbers[LETTERS[i] as usize] = i as u8;
        i += 1;
    }
    numbers
};

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i > group.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

/// None for what is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if text.len() % 4 != 0 {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|b| **b == b'=').count();
    let letters = &text[..text.len() - padding];
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in letters.chunks(4) {
        let mut bits = 0;
        for b in group {
            match NUMBERS[usize::from(*b)] {
                64 => return None,
                n => bits = bits << 6 | u32::from(n),
            }
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&encode(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    option::deserialize(d).map(Option::unwrap_or_default)
}

/// The same for what may be absent.
pub(crate) mod option {
    use super::*;

    #[allow(clippy::ref_option)] // as serde calls it
    pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, s: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::serialize(bytes, s),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<Cow<'de, str>>::deserialize(d)?;
        text.map(|text| decode(&text).ok_or_else(|| de::Error::custom("this is not base64"))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn there_and_back() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")] {
            assert_eq!((encode(bytes.as_bytes()).as_str(), decode(text).as_deref()), (text, Some(bytes.as_bytes())));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for wrong in ["Z", "Zg=", "Zg==Zg==", "====", "Zg=g", "Z\u{e9}=", "Zm9\n"] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
    }
}
