//! Parameters that are lists: what expressions choose from them, how they are given, in a call and from outside.

mod support;

use coll_sema::Instance;
use expect_test::{Expect, expect};
use support::{load_text as load, steps};

/// Each node's first rank sends to the node's others.
const NODES: &str = "schedule nodes(local = list(2)): broadcast {
    let nodes = cover(local, n)
    for k in 0..nodes {
        step each r in total(local, k) + 1..min(total(local, k + 1), n) { recv data from total(local, k) }
    }
    step { send data from 0 to most(local, nodes) - least(local, nodes) + nth(local, 1) }
}";

fn check(text: &str, ranks: u32, local: &[i64], expected: Expect) {
    let (_, module, diagnostics) = load(text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let params = local.iter().map(|&size| ("local".to_string(), size)).collect();
    let at = module.schedules().len() - 1;
    let made = module.instantiate(at, &Instance { ranks, root: 0, params });
    let made = made.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let shown = coll_base::named_values(&made.program.params).join("; ");
    expected.assert_eq(&format!("{shown}\n{}", steps(&made.program)));
}

#[test]
fn nodes_are_as_large_as_the_list_says_and_then_as_its_last() {
    check(
        NODES,
        5,
        &[],
        expect![[r#"
            local = 2
            0: 0.data > 1
            1: 2.data > 3
            2: 0.data > 2
        "#]],
    );
    check(
        NODES,
        8,
        &[3, 1, 2],
        expect![[r#"
            local = 3, 1, 2
            0: 0.data > 1; 0.data > 2
            1: 4.data > 5
            2: 6.data > 7
            3: 0.data > 3
        "#]],
    );
}

#[test]
fn a_call_is_given_the_callers_list_a_list_or_a_number() {
    let calls = |given: &str| {
        format!("schedule outer(local = list(1, 3)): broadcast {{ broadcast.nodes(data{given}) }}\n{NODES}")
    };
    // The caller is declared first.
    let program = |given: &str| {
        let (_, module, diagnostics) = load(&calls(given));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let made = module.instantiate(0, &Instance { ranks: 6, root: 0, params: Vec::new() });
        steps(&made.unwrap_or_else(|refusal| panic!("{refusal:?}")).program)
    };
    assert_eq!(program(", local = local"), program(", local = list(1, 3)"));
    assert_eq!(program(", local = list(2)"), program(", local = 4 / 2"));
    assert_eq!(program(""), program(", local = 2"));
    assert_ne!(program(""), program(", local = local"));
}

#[test]
fn what_declares_lists_is_known_from_outside() {
    let (_, module, _) = load(NODES);
    let info = &module.schedules()[0];
    assert_eq!(
        (&info.params[..], &info.lists[..]),
        (&[("local".to_string(), 2)][..], &["local".to_string()][..])
    );
    // A number is no list of several.
    let (_, module, _) = load("schedule one(c = 1): broadcast { step each v in 1..n { recv data from 0 } }");
    let params = vec![("c".to_string(), 1), ("c".to_string(), 2)];
    let refused = module.instantiate(0, &Instance { ranks: 2, root: 0, params });
    assert!(format!("{refused:?}").contains("is one number, and 2 are given"), "{refused:?}");
}
