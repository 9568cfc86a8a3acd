//! Files that are wrong in one thing each: every attribute missing or wrong in turn, and what only the whole tells. Each is
//! refused with a place and the attribute's name, or taken as the documentation says.

mod support;

use coll_base::{Diagnostic, SourceMap};
use coll_interop::codes::{
    ACCESS, CHUNKS, CONNECTION, DEPENDENCY, MISSING, NEVER_TAKEN, NUMBERING, RING, SHAPE, UNMATCHED, VALUE,
};
use support::examine;

/// A ring all-reduce of three ranks with a dependency and scratch: right as it stands.
fn good() -> String {
    let mut text = String::from(
        "<algo name=\"ring\" proto=\"Simple\" nchannels=\"2\" nchunksperloop=\"3\" ngpus=\"3\" coll=\"allreduce\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"4096\">\n",
    );
    let step = |s: u32, kind: &str, source: String, target: String, depends: &str, hasdep: u32| {
        format!(
            "      <step s=\"{s}\" type=\"{kind}\" {source} {target} cnt=\"1\" {depends} hasdep=\"{hasdep}\"/>\n"
        )
    };
    let from = |buffer: &str, at: u32| format!("srcbuf=\"{buffer}\" srcoff=\"{at}\"");
    let to = |buffer: &str, at: u32| format!("dstbuf=\"{buffer}\" dstoff=\"{at}\"");
    let none = "depid=\"-1\" deps=\"-1\"";
    for r in 0..3u32 {
        let chunk = |back: u32| (r + 6 - back) % 3;
        let (next, before) = ((r + 1) % 3, (r + 2) % 3);
        text += &format!("  <gpu id=\"{r}\" i_chunks=\"3\" o_chunks=\"3\" s_chunks=\"1\">\n");
        text += &format!("    <tb id=\"0\" send=\"{next}\" recv=\"{before}\" chan=\"0\">\n");
        text += &step(0, "s", from("i", chunk(0)), to("i", chunk(0)), none, 0);
        text += &step(1, "rrc", from("i", chunk(1)), to("i", chunk(1)), none, 0);
        text += &step(2, "s", from("i", chunk(1)), to("i", chunk(1)), none, 0);
        text += &step(3, "rrc", from("i", chunk(2)), to("i", chunk(2)), none, 1);
        text += "    </tb>\n";
        text += &format!("    <tb id=\"1\" send=\"{next}\" recv=\"{before}\" chan=\"1\">\n");
        text += &step(0, "s", from("i", chunk(2)), to("i", chunk(2)), "depid=\"0\" deps=\"3\"", 0);
        text += &step(1, "rcs", from("i", 0), to("i", chunk(0)), none, 0);
        text += &step(2, "r", from("i", 0), to("i", chunk(1)), none, 0);
        text += "    </tb>\n  </gpu>\n";
    }
    text + "</algo>\n"
}

/// What is told of a text, imported and proved.
fn told(text: &str) -> Vec<Diagnostic> {
    match examine("ring.xml", text) {
        Ok(found) => found.errors.into_iter().chain(found.warnings).collect(),
        Err(told) => told,
    }
}

fn line_of(text: &str, diagnostic: &Diagnostic) -> u32 {
    let mut map = SourceMap::new();
    map.add("ring.xml", text);
    diagnostic.primary.as_ref().map_or(0, |label| map.line_of(label.span))
}

#[test]
fn the_base_is_right() {
    assert_eq!(told(&good()), []);
}

/// Attributes that may be left out, as `docs/formats.md` says.
const OPTIONAL: [&str; 5] = ["name", "outofplace", "minBytes", "maxBytes", "hasdep"];

/// Every attribute of one tag of each kind, with its line: tag, name, and the text of the attribute.
fn attributes(text: &str) -> Vec<(usize, String, String)> {
    let mut all = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (line, content) in text.lines().enumerate() {
        let Some(tag) = content.trim().strip_prefix('<').and_then(|rest| rest.split(' ').next()) else {
            continue;
        };
        // The step that receives and depends on nothing says nothing of dependencies: take the one that does, too.
        let key =
            if content.contains("depid=\"0\"") { "step that waits".to_string() } else { tag.to_string() };
        if tag.starts_with('/') || !seen.insert(key) {
            continue;
        }
        for part in content.trim().trim_end_matches(['/', '>']).split(' ').skip(1) {
            if let Some((name, _)) = part.split_once('=') {
                all.push((line, name.to_string(), part.to_string()));
            }
        }
    }
    all
}

fn edited(text: &str, line: usize, from: &str, to: &str) -> String {
    let lines = text.lines().enumerate().map(|(at, content)| match at == line {
        true => content.replacen(&format!(" {from}"), to, 1),
        false => content.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// B090: each attribute missing in turn.
#[test]
fn every_attribute_missing_in_turn() {
    let text = good();
    let all = attributes(&text);
    assert!(all.len() > 30, "{all:?}");
    for (line, name, attribute) in all {
        let found = told(&edited(&text, line, &attribute, ""));
        let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.is_error()).collect();
        if OPTIONAL.contains(&name.as_str()) || ["dstbuf", "dstoff"].contains(&name.as_str()) {
            // Sides that a step does not use may be left out as well; the first step sends.
            assert!(errors.is_empty(), "{name}: {errors:#?}");
            continue;
        }
        let first = errors.first().unwrap_or_else(|| panic!("{name} is missing, and nothing is told"));
        assert_eq!(first.code, MISSING, "{name}: {first:#?}");
        assert!(first.message.contains(&format!("`{name}`")), "{name}: {}", first.message);
        assert_eq!(line_of(&text, first) as usize, line + 1, "{name}: {first:#?}");
    }
}

/// Each attribute wrong in turn: no number, below and above its range.
#[test]
fn every_attribute_wrong_in_turn() {
    let text = good();
    for (line, name, attribute) in attributes(&text) {
        for value in ["", "x", "-2", "99999999999999999999", "1.5"] {
            if name == "name" || name == "coll" && !value.is_empty() {
                continue;
            }
            let edited = edited(&text, line, &attribute, &format!(" {name}=\"{value}\""));
            let found = told(&edited);
            let first = found.iter().find(|d| d.is_error());
            let first = first.unwrap_or_else(|| panic!("{name} is `{value}`, and nothing is told"));
            assert_eq!(first.code, VALUE, "{name} `{value}`: {first:#?}");
            assert!(first.message.contains(&format!("`{name}`")), "{name}: {}", first.message);
            assert_eq!(line_of(&edited, first) as usize, line + 1, "{name} `{value}`: {first:#?}");
        }
    }
}

/// Changes to the good file, each with the code it gives, and words of its message.
#[test]
fn what_only_the_whole_tells() {
    let text = good();
    let step3 = "<step s=\"3\" type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>";
    let last = "<step s=\"2\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"2\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>";
    #[rustfmt::skip]
    let cases: &[(&str, &str, coll_base::Code, &str)] = &[
        // X01: the last chunk counts, not the first alone.
        ("srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"1\" depid=\"-1\"", "srcoff=\"2\" dstbuf=\"i\" dstoff=\"2\" cnt=\"2\" depid=\"-1\"", CHUNKS, "step 0 of thread block 0 of gpu 0"),
        // X02: no offset on a side that is used.
        ("srcbuf=\"i\" srcoff=\"0\"", "srcbuf=\"i\" srcoff=\"-1\"", CHUNKS, "step 0"),
        // X03: what receives and reduces is checked too.
        ("type=\"rrc\" srcbuf=\"i\" srcoff=\"2\" dstbuf=\"i\" dstoff=\"2\"", "type=\"rrc\" srcbuf=\"i\" srcoff=\"2\" dstbuf=\"i\" dstoff=\"10000\"", CHUNKS, "step 1"),
        // X04, X05: peers and channels above their range, and a peer that is the rank itself.
        ("send=\"1\"", "send=\"3\"", VALUE, "`send`"),
        ("send=\"1\"", "send=\"0\"", VALUE, "`send`"),
        ("chan=\"1\"", "chan=\"2\"", CONNECTION, "channel 2"),
        // X06: dependencies.
        ("depid=\"0\" deps=\"3\"", "depid=\"7\" deps=\"0\"", DEPENDENCY, "step 0 of thread block 1"),
        ("depid=\"0\" deps=\"3\"", "depid=\"0\" deps=\"4\"", DEPENDENCY, "step 0 of thread block 1"),
        ("depid=\"0\" deps=\"3\"", "depid=\"1\" deps=\"0\"", DEPENDENCY, "waits for what is not there"),
        ("depid=\"0\" deps=\"3\"", "depid=\"0\" deps=\"-1\"", VALUE, "`deps`"),
        ("dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\"", "dstoff=\"0\" cnt=\"1\" depid=\"1\" deps=\"2\"", RING, "wait for each other"),
        // X07: numbers of steps.
        ("<step s=\"1\" type=\"rrc\"", "<step s=\"2\" type=\"rrc\"", NUMBERING, "out of order"),
        ("<step s=\"1\" type=\"rrc\"", "<step s=\"0\" type=\"rrc\"", NUMBERING, "out of order"),
        // X08: sends and receives.
        (last, "", UNMATCHED, "never receives"),
        ("type=\"rrc\" srcbuf=\"i\" srcoff=\"2\" dstbuf=\"i\" dstoff=\"2\" cnt=\"1\"", "type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\" cnt=\"2\"", UNMATCHED, "two counts"),
        ("recv=\"2\" chan=\"1\"", "recv=\"2\" chan=\"0\"", CONNECTION, "both"),
        // X09: ids of ranks and thread blocks.
        ("<gpu id=\"1\"", "<gpu id=\"0\"", NUMBERING, "twice"),
        ("<gpu id=\"2\"", "<gpu id=\"3\"", VALUE, "`id`"),
        ("ngpus=\"3\"", "ngpus=\"4\"", NUMBERING, "no `gpu` has the id 3"),
        ("<tb id=\"1\"", "<tb id=\"2\"", NUMBERING, "out of order"),
        // Counts.
        ("i_chunks=\"3\"", "i_chunks=\"4\"", SHAPE, "`i_chunks` 4"),
        ("minBytes=\"0\" maxBytes=\"4096\"", "minBytes=\"4097\" maxBytes=\"4096\"", NEVER_TAKEN, "may never be taken"),
        ("inplace=\"1\"", "inplace=\"0\"", ACCESS, "writes the input"),
        // X10: what comes out is checked.
        ("type=\"rrc\" srcbuf=\"i\" srcoff=\"2\"", "type=\"r\" srcbuf=\"i\" srcoff=\"2\"", coll_check::plan::codes::WRONG_END, "ends without"),
        (step3, "<step s=\"3\" type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"s\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>", coll_check::plan::codes::WRONG_END, "rank"),
        // A dependency dropped is a race.
        ("depid=\"0\" deps=\"3\"", "depid=\"-1\" deps=\"-1\"", coll_check::plan::codes::RACE, "while"),
    ];
    for (from, to, code, words) in cases {
        assert!(text.contains(from), "the good file lacks {from}");
        let found = told(&text.replacen(from, to, 1));
        let fits = |d: &&Diagnostic| d.code == *code && d.message.contains(words);
        assert!(
            found.iter().any(|d| fits(&d)),
            "{from} -> {to}: expected {code} `{words}`, found {found:#?}"
        );
        let placed = found.iter().find(fits).expect("just found");
        let is_of_the_plan = code.0.starts_with("E06");
        assert!(placed.primary.is_some() || is_of_the_plan, "{placed:#?}");
    }
}

/// Lexing is lenient: comments first, other line ends, unknown elements and attributes, one line or many.
#[test]
fn how_a_file_is_written_down_does_not_matter() {
    let text = good();
    let variants = [
        format!("<!-- a comment\n over lines -->\n{text}"),
        format!("\u{feff}<?xml version=\"1.0\"?>\n{text}"),
        text.replace('\n', "\r\n"),
        text.replace("\n", " ").replace("> <", ">\t<"),
        text.replace(" cnt=", "\n   cnt="),
        text.replacen("    <tb", "    <copy i_off=\"0\" o_off=\"0\"/>\n    <tb", 1),
        text.replacen("<algo ", "<algo redop=\"nop\" nthreadblocks=\"2\" ", 1),
        // X02: no offset on the side that a receive does not use.
        text.replace("type=\"r\" srcbuf=\"i\" srcoff=\"0\"", "type=\"r\" srcbuf=\"i\" srcoff=\"-1\""),
    ];
    for variant in variants {
        assert_eq!(told(&variant), [], "{variant}");
    }
    for broken in
        ["", "<algo", "<algo/>", "<system/>", "<algo name=\"x\" name=\"y\"/>", &text[..text.len() - 9]]
    {
        assert!(told_of(broken).iter().any(Diagnostic::is_error), "{broken}");
    }
}

fn told_of(text: &str) -> Vec<Diagnostic> {
    let mut map = SourceMap::new();
    let file = map.add("x.xml", text);
    coll_interop::Foreign::read(coll_interop::Form::MscclXml, file, &map).err().unwrap_or_default()
}

/// Cut off anywhere, a file is refused, and nothing panics.
#[test]
fn cut_off_anywhere() {
    let text = good();
    for end in (0..text.len() - 2).step_by(7) {
        assert!(told_of(&text[..end]).iter().any(Diagnostic::is_error), "cut at {end}");
    }
}
