//! Names and patterns of nodes: `gpu3`, `gpu*`, `gpu[0..4]`, `node*.nic0`. A `*` stands for any letters of one part of a
//! name, `[a..b]` for the numbers from `a` up to, not including, `b`.

/// A pattern, cut into parts.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Letters(String),
    Any,
    Numbers(u64, u64),
}

/// Whether a text is one name, not a pattern.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.contains(['*', '['])
}

/// Whether a node or a machine may be called so.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':'))
}

/// A text with what names may not hold replaced.
pub(crate) fn to_name(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':') { c } else { '_' };
    text.chars().take(64).map(kept).collect()
}

impl Pattern {
    /// Reads a pattern, or says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (letters, tail) = rest.split_at(rest.find(['*', '[']).unwrap_or(rest.len()));
            if !letters.is_empty() {
                parts.push(Part::Letters(letters.to_string()));
            }
            rest = match tail.as_bytes().first() {
                None => tail,
                Some(b'*') => {
                    parts.push(Part::Any);
                    &tail[1..]
                }
                Some(_) => {
                    let (range, after) =
                        tail[1..].split_once(']').ok_or_else(|| format!("`{text}` has no `]`"))?;
                    let ends = range.split_once("..").map(|(a, b)| (a.trim().parse(), b.trim().parse()));
                    let Some((Ok(first), Ok(end))) = ends else {
                        return Err(format!("`[{range}]` is no range; write `[0..4]`"));
                    };
                    if first >= end {
                        return Err(format!("the range `[{range}]` is empty"));
                    }
                    parts.push(Part::Numbers(first, end));
                    after
                }
            };
        }
        // Each `*` may be tried at each letter: few of them keep that short.
        if parts.iter().filter(|part| matches!(part, Part::Any)).count() > 8 {
            return Err(format!("`{text}` has more than 8 `*`"));
        }
        Ok(Pattern(parts))
    }

    /// The names that it can mean, if they can be listed: one range, and letters round it.
    pub(crate) fn names(&self) -> Option<Names<'_>> {
        let (before, range, after) = match &self.0[..] {
            [Part::Numbers(a, b)] => ("", (*a, *b), ""),
            [Part::Letters(before), Part::Numbers(a, b)] => (before.as_str(), (*a, *b), ""),
            [Part::Numbers(a, b), Part::Letters(after)] => ("", (*a, *b), after.as_str()),
            [Part::Letters(before), Part::Numbers(a, b), Part::Letters(after)] => {
                (before.as_str(), (*a, *b), after.as_str())
            }
            _ => return None,
        };
        Some(Names { before, range, after })
    }

    /// Whether a name is one of those meant.
    pub(crate) fn fits(&self, name: &str) -> bool {
        fits(&self.0, name)
    }
}

/// Names that differ in a number.
pub(crate) struct Names<'p> {
    before: &'p str,
    range: (u64, u64),
    after: &'p str,
}

impl Names<'_> {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.range.1 - self.range.0
    }

    /// Each of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> {
        (self.range.0..self.range.1).map(|number| format!("{}{number}{}", self.before, self.after))
    }
}

fn fits(parts: &[Part], name: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return name.is_empty() };
    match first {
        Part::Letters(letters) => name.strip_prefix(letters.as_str()).is_some_and(|tail| fits(rest, tail)),
        Part::Any => {
            let limit = name.find('.').unwrap_or(name.len());
            (0..=limit).any(|taken| name.is_char_boundary(taken) && fits(rest, &name[taken..]))
        }
        Part::Numbers(first, end) => {
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = name.split_at(digits);
            let is_written_so = number.len() == 1 || !number.starts_with('0');
            is_written_so
                && number.parse::<u64>().is_ok_and(|n| (*first..*end).contains(&n))
                && fits(rest, tail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_nodes() {
        for (pattern, name, expected) in [
            ("gpu3", "gpu3", true),
            ("gpu3", "gpu31", false),
            ("gpu*", "gpu31", true),
            ("gpu*", "node0.gpu1", false),
            ("*.gpu*", "node0.gpu1", true),
            ("node*.nic0", "node12.nic0", true),
            ("node*", "node0.gpu1", false),
            ("gpu[0..4]", "gpu3", true),
            ("gpu[0..4]", "gpu4", false),
            ("gpu[0..40]", "gpu04", false),
            ("n[1..3].gpu[0..2]", "n2.gpu1", true),
            ("n[1..3].gpu[0..2]", "n3.gpu1", false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().fits(name), expected, "{pattern} {name}");
        }
        let listed = Pattern::new("n[1..3].gpu").unwrap();
        assert_eq!(listed.names().unwrap().all().collect::<Vec<_>>(), ["n1.gpu", "n2.gpu"]);
        assert!(Pattern::new("n[1..3].gpu*").unwrap().names().is_none());
        for (pattern, word) in
            [("gpu[0..", "no `]`"), ("gpu[a]", "no range"), ("gpu[4..4]", "empty"), ("*********", "8 `*`")]
        {
            assert!(Pattern::new(pattern).unwrap_err().contains(word), "{pattern}");
        }
    }
}
