//! Every code of this crate has a page whose examples do what they say, and a fixture that provokes it.

mod support;

use coll_syntax::codes;
use std::fs;
use std::path::PathBuf;
use support::read;

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn codes_of(text: &str) -> Vec<&'static str> {
    read(text).diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect()
}

/// The fences of a page: what stands behind their three backticks, and their text.
fn fences(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).filter_map(|fence| fence.split_once('\n')).collect()
}

#[test]
fn every_page_shows_the_fault_and_the_mend() {
    for (code, title) in codes::ALL {
        let page = fs::read_to_string(project().join(format!("docs/errors/{code}.md"))).expect("a page");
        assert!(page.starts_with(&format!("# {code}: {title}\n")), "{code}");
        let fences = fences(&page);
        let [(wrong_mark, wrong), (right_mark, right)] = fences.as_slice() else {
            panic!("{code}: two fences")
        };
        assert!(wrong_mark.starts_with(&format!("coll fails={code}")), "{code}");
        assert!(right_mark.starts_with("coll"), "{code}");
        assert!(codes_of(wrong).contains(&code.0), "{code}: {:?}", read(wrong).diagnostics);
        assert_eq!(codes_of(right), [""; 0], "{code}");
    }
}

#[test]
fn every_code_has_a_fixture_that_provokes_it_alone() {
    for (code, _) in codes::ALL {
        let mut fixtures: Vec<PathBuf> = fs::read_dir(project().join("tests/ui"))
            .expect("a folder of fixtures")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "coll"))
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(code.0)))
            .collect();
        fixtures.sort();
        assert!(!fixtures.is_empty(), "{code} has no fixture");
        for path in fixtures {
            let told = codes_of(&fs::read_to_string(&path).expect("a fixture"));
            let alone = told == [code.0] || *code == codes::TOO_MANY && told.last() == Some(&code.0);
            assert!(alone, "{}: {told:?}", path.display());
        }
    }
}
