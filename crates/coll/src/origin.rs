//! What a plan was compiled from, as one hash. The compiler is a function: the same texts, parameters, rank count, root
//! and options give the same plan, byte for byte. So ranks can tell that their slices are of one plan without any of
//! them knowing the whole.

use crate::Source;
use coll_compile::Options;
use coll_plan::Plan;
use sha2::{Digest, Sha256};

/// Hex SHA-256 over all that decides what a plan is: the texts of the schedule and of all that it uses, under their names,
/// as plans name source lines; the schedule's name, parameters, rank count and root; the options; and the version of the
/// compiler and of the plan's format.
pub(crate) fn origin(source: &Source, plan: &Plan, options: &Options) -> String {
    let mut hasher = Sha256::new();
    // Each part behind its length, so that no two lists of parts look alike.
    let mut add = |part: &str| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    add("collc origin");
    add(env!("CARGO_PKG_VERSION"));
    add(&coll_plan::version(plan).to_string());
    add(&plan.name);
    add(&format!("{:?} {} {:?}", plan.params, plan.world(), plan.root));
    add(&format!("{:?} {:?} {:?}", options.merge, options.lanes, options.slices));
    add(&format!("{:?} {:?}", options.accumulate, options.wire));
    for pass in coll_compile::PASSES.iter().filter(|pass| options.skip.iter().any(|name| name == pass.name)) {
        add(&format!("skip {}", pass.name));
    }
    let mut texts: Vec<(&str, &str)> = (0..source.map.len() as u32)
        .map(coll_base::FileId)
        .map(|id| (source.map.name(id), source.map.text(id)))
        .collect();
    texts.sort_unstable();
    for (name, text) in texts {
        add(name);
        add(text);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Instance, Options, Outcome, Source, prove};

    fn origin(source: &Source, ranks: u32, root: u32, options: &Options) -> String {
        let instance = Instance { ranks, root, params: Vec::new() };
        let Outcome::Right(proved) = prove(source, 0, &instance, options) else { panic!("it is right") };
        proved.plan.origin.expect("what is compiled has an origin")
    }

    #[test]
    fn all_that_decides_what_a_plan_is_shows_in_its_origin() {
        let text = "schedule chain: broadcast {\n    step { send data from root to (root + 1) % n }\n}\n";
        let source = Source::from_text("chain.coll", text);
        let plain = origin(&source, 2, 0, &Options::default());
        assert_eq!(plain, origin(&Source::from_text("chain.coll", text), 2, 0, &Options::default()));
        let other_text = text.replace("chain", "change");
        let lanes = Options { lanes: Some(2), ..Options::default() };
        let accumulate = Options { accumulate: Some(coll_base::DType::F32), ..Options::default() };
        let wire = Options { wire: Some(coll_base::DType::Bf16), ..Options::default() };
        let skip = Options { skip: vec!["prune".into()], ..Options::default() };
        let others = [
            origin(&source, 2, 1, &Options::default()),
            origin(&source, 2, 0, &lanes),
            origin(&source, 2, 0, &accumulate),
            origin(&source, 2, 0, &wire),
            origin(&source, 2, 0, &skip),
            origin(&Source::from_text("chain.coll", other_text), 2, 0, &Options::default()),
            origin(&Source::from_text("other.coll", text), 2, 0, &Options::default()),
        ];
        let mut distinct = std::collections::BTreeSet::from(others.clone());
        distinct.insert(plain);
        assert_eq!(distinct.len(), others.len() + 1);
    }
}
