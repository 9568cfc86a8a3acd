//! The manual, `docs/topology.md`: each of its TOML blocks is right, or fails as it is marked; its tables are complete.

use super::root;
use coll_topo::{DeviceFigures, GENERATORS, load};

#[test]
fn the_manual_is_true() {
    let text = std::fs::read_to_string(root().join("docs/topology.md")).expect("it is there");
    let mut blocks = 0;
    for part in text.split("```toml").skip(1) {
        let (mark, body) = part.split_once('\n').expect("a block has lines");
        let body = body.split("```").next().expect("a block ends");
        let loaded = load("docs/topology.md", body);
        match mark.trim().strip_prefix("fails=") {
            None => assert!(loaded.topology.is_some(), "{}\n{body}", loaded.first_error()),
            Some(code) => {
                let found: Vec<&str> = loaded.diagnostics.iter().map(|told| told.code.0).collect();
                assert!(found.contains(&code), "{code} is not in {found:?}\n{body}");
            }
        }
        blocks += 1;
    }
    assert!(blocks >= 5, "only {blocks} blocks");
    for (name, form, _) in GENERATORS {
        assert!(
            text.contains(&format!("| `{}`", form.split(" or ").next().expect("a form"))),
            "no row for {name}"
        );
    }
    let DeviceFigures { message_us, reduce_ns, copy_ns } = DeviceFigures::default();
    assert_eq!((message_us, reduce_ns, copy_ns), (0.5, 0.01, 0.005));
    for default in ["`0.5us`", "`100GB/s`", "`200GB/s`"] {
        assert!(text.contains(default), "the manual does not state {default}");
    }
}

#[test]
fn the_generators_of_the_manual_can_be_made() {
    let text = std::fs::read_to_string(root().join("docs/topology.md")).expect("it is there");
    let mut made = 0;
    for word in text.split('`').skip(1).step_by(2).filter(|word| coll_topo::is_generator(word)) {
        // Forms have capital letters where numbers go.
        if !word.chars().any(|c| c.is_ascii_uppercase()) {
            let loaded = load(word, word);
            assert!(loaded.topology.is_some(), "{}", loaded.first_error());
            made += 1;
        }
    }
    assert!(made >= 10, "only {made} examples");
}
