//! The manual's page on operators is what the code says. `UPDATE_EXPECT=1` writes it.

use std::fs;
use std::path::Path;

#[test]
fn the_page_on_operators_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
    let due = coll_kernel::manual();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &due).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == due,
        "docs/operators.md is not what the code says; `UPDATE_EXPECT=1 cargo test` writes it"
    );
}
