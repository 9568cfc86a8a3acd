//! The pages of `docs/errors` and the fixtures of `tests/ui` that speak of this crate's codes: what is said to fail
//! fails with that code and no other, and its mend passes.

mod support;

use coll_sema::codes;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The codes that a text is refused with.
fn found(text: &str, ranks: u32) -> Vec<String> {
    let refusal = support::refusal(text, ranks);
    let heads = refusal.lines().filter(|line| !line.starts_with(' '));
    let mut codes: Vec<String> =
        heads.map(|head| head.split(':').next().unwrap_or_default().to_string()).collect();
    codes.dedup();
    codes
}

/// `ranks=4` in a fence's words, or `--ranks 4` in a fixture's first line.
fn ranks(words: &str) -> u32 {
    let number = words.split("ranks").nth(1).map(|rest| rest.trim_start_matches(['=', ' ']));
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    number.and_then(|text| digits(text).parse().ok()).unwrap_or(8)
}

#[test]
fn examples_of_pages_fail_as_they_say_and_their_mends_pass() {
    for (code, _) in codes::ALL {
        let page = std::fs::read_to_string(root().join(format!("docs/errors/{code}.md"))).unwrap();
        let fences: Vec<&str> = page.split("```coll").skip(1).collect();
        let [bad, good] = fences[..] else { panic!("{code}: an example and its mend") };
        let split = |fence: &'_ str| {
            let (words, text) = fence.split_once('\n').unwrap();
            (words.to_string(), text.split("```").next().unwrap().to_string())
        };
        let ((words, text), (mended_words, mended)) = (split(bad), split(good));
        assert!(words.contains(&format!("fails={code}")), "{code}");
        assert_eq!(
            found(&text, ranks(&words)),
            [code.to_string()],
            "{}",
            support::refusal(&text, ranks(&words))
        );
        assert_eq!(support::refusal(&mended, ranks(&mended_words)), "", "{code}");
    }
}

#[test]
fn fixtures_fail_with_their_code() {
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/ui")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let own = codes::ALL.iter().find(|(code, _)| name.starts_with(code.0) && name.ends_with(".coll"));
        if let Some((code, _)) = own {
            let text = std::fs::read_to_string(&path).unwrap();
            let ranks = ranks(text.lines().next().unwrap());
            assert!(
                found(&text, ranks).contains(&code.to_string()),
                "{name}: {}",
                support::refusal(&text, ranks)
            );
            seen.push(*code);
        }
    }
    assert!(codes::ALL.iter().all(|(code, _)| seen.contains(code)), "every code has a fixture");
}
