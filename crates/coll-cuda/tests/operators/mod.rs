//! Users' operators for tests: those that people write, and those of the examples.

use coll_base::{FileId, SourceMap};
use coll_kernel::UserOperator;
use std::path::Path;

/// One operator a line; each works on some types, and what does not on others is refused there.
const WRITTEN: &str = "
operator scaled_sum(a, b; alpha) = a + b  given x: alpha * x
operator ordered second(a, b) = b
operator low(a, b) = min(a, b)
operator halved(a, b; alpha) = a + b  given x: alpha * x  ensure y: y / 2
operator hypot(a, b) = sqrt(a * a + b * b)  ensure y: sqrt(y)
operator digits(a, b) = max(a % 10, b % 10)  given x: abs(x)
operator shifted(a, b) = a ^ b  given x: (x << (x & 7)) ^ (x >> (x % 9)) | x
operator most(a, b) = if a > b and not (b > a) { a } else if a == b or a != a { a } else { b }
operator product(a, b) = a * b  ensure y: if y < 0 { -1 / y } else { y / 3 - 1 }
operator clamped(a, b; low, high) = min(max(a, b), high)  given x: max(x, low)
operator modular(a, b) = (a + b) % 7
";

/// All of them.
pub(crate) fn operators() -> Vec<UserOperator> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = operators_of(WRITTEN.into());
    assert_eq!(found.len(), 11, "{found:?}");
    let mut files: Vec<_> =
        std::fs::read_dir(root.join("examples")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "coll")) {
        found.extend(operators_of(std::fs::read_to_string(path).unwrap()));
    }
    assert!(found.iter().any(|operator| operator.name == "absmax"), "{found:?}");
    found
}

fn operators_of(text: String) -> Vec<UserOperator> {
    struct Empty;
    impl coll_sema::Library for Empty {
        fn schedule(&self, _: &str, _: &str) -> Option<(String, String)> {
            None
        }
        fn collectives(&self) -> (String, String) {
            ("collectives.coll".into(), String::new())
        }
        fn names(&self) -> Vec<(String, String)> {
            Vec::new()
        }
    }
    let mut map = SourceMap::new();
    let main: FileId = map.add("operators.coll", text);
    coll_sema::load(&mut map, main, &Empty).0.operators().to_vec()
}
