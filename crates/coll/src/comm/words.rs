//! A call in words, and its fingerprint: what all ranks must have alike, for comparing and for messages.

use crate::comm::Op;
use crate::comm::request::{Counts, Request, What};
use crate::comm::resolve::Resolved;
use crate::comm::types::Types;
use coll_tcp::Call;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What is told of a call that is bound: made once, so that calling again allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallWords {
    /// Equal on every rank that makes the same call.
    pub(crate) call: Arc<Call>,
    /// In one line, for messages of this rank.
    pub(crate) text: String,
    /// The schedule's name.
    pub(crate) schedule: String,
    /// The plan's hash, or what stands for it.
    pub(crate) plan: String,
}

/// Counts that are shown; more are an ellipsis.
const SHOWN_MAX: usize = 16;

/// Of a plan's hash that is shown.
const PLAN_CHARS: usize = 12;

/// The first digits of a plan's hash, which may follow words.
fn short(plan: &str) -> String {
    plan.rsplit(' ').next().unwrap_or(plan).chars().take(PLAN_CHARS).collect()
}

impl CallWords {
    pub(crate) fn new(resolved: &Resolved<'_>, schedule: &str, plan: &str) -> CallWords {
        let key = &resolved.key;
        let mut words = vec![
            ("operation".to_string(), operation(key.what, resolved.custom.map(|custom| custom.name()))),
            ("element type".to_string(), key.dtype.name().to_string()),
            ("elements".to_string(), elements(resolved)),
        ];
        if let Some(op) = &resolved.op {
            words.push(("operator".to_string(), op.words()));
            if let Some(definition) = op.definition() {
                words.push(("operator's definition".to_string(), definition));
            }
        }
        if key.what.has_root() {
            words.push(("root".to_string(), key.root.to_string()));
        }
        let Types { accumulate, wire } = key.types;
        for (field, dtype) in [("accumulated in", accumulate), ("travel as", wire)] {
            words.extend(dtype.map(|dtype| (field.to_string(), dtype.name().to_string())));
        }
        words.push(("schedule".to_string(), schedule.to_string()));
        words.push(("plan".to_string(), short(plan)));
        let mut hasher = Sha256::new();
        for (field, value) in &words {
            hasher.update((field.len() as u64).to_le_bytes());
            hasher.update(field);
            hasher.update((value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        // What is shown of plans and of many counts is cut short; what is compared is not.
        hasher.update(plan);
        if let Counts::Shared(counts) = resolved.counts {
            counts.iter().for_each(|&count| hasher.update((count as u64).to_le_bytes()));
        }
        if let Counts::Classes(counts) = resolved.counts {
            counts.iter().for_each(|&count| hasher.update(count.to_le_bytes()));
        }
        let digest = hasher.finalize();
        CallWords {
            schedule: schedule.to_string(),
            plan: plan.to_string(),
            call: Arc::new(Call { fingerprint: std::array::from_fn(|at| digest[at]), words }),
            text: text(
                key.what,
                key.dtype.name(),
                resolved.op.as_ref(),
                key.root,
                shown(resolved),
                resolved.custom.map(|custom| custom.name()),
            ),
        }
    }
}

impl Request<'_> {
    /// In one line, also where it makes no sense.
    pub(crate) fn describe(&self) -> String {
        let input = self.input.as_ref().map(|view| (view.dtype, view.elements()));
        let output = self.output.as_ref().map(|view| (view.dtype, view.elements()));
        let first = match self.what {
            What::Scatter | What::ReduceScatter => output.or(input),
            _ => input.or(output),
        };
        let dtype = first.map_or("", |(dtype, _)| dtype.name());
        let count = first.and_then(|(_, elements)| elements).map(|count| count.to_string());
        let custom = self.custom.as_ref().map(|(custom, _)| custom.name());
        text(self.what, dtype, self.op.as_ref(), self.root, count, custom)
    }
}

fn operation(what: What, custom: Option<&str>) -> String {
    match (what, custom) {
        (_, Some(name)) => name.to_string(),
        (What::Send | What::Receive, _) => "message".to_string(),
        (what, _) => what.collective().unwrap_or("custom").to_string(),
    }
}

/// Elements as every rank must have them.
fn elements(resolved: &Resolved<'_>) -> String {
    match resolved.counts {
        Counts::AtRoot(_) | Counts::Pairs { .. } => "each rank's own".to_string(),
        _ => shown(resolved).unwrap_or_default(),
    }
}

/// Elements as this rank gave them.
fn shown(resolved: &Resolved<'_>) -> Option<String> {
    match resolved.counts {
        Counts::Even => Some(resolved.key.count.to_string()),
        Counts::Shared(counts) => Some(list(counts)),
        Counts::AtRoot(Some(counts)) => Some(list(counts)),
        Counts::AtRoot(None) => Some(resolved.own.to_string()),
        Counts::Pairs { send, receive } => Some(format!("{} out, {} in", list(send), list(receive))),
        Counts::Classes(counts) => Some(list(counts)),
    }
}

fn list<T: ToString>(counts: &[T]) -> String {
    let mut shown: Vec<String> = counts.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    if counts.len() > SHOWN_MAX {
        shown.push("…".to_string());
    }
    format!("[{}]", shown.join(", "))
}

/// `allreduce of 1024 f32, sum`
fn text(
    what: What,
    dtype: &str,
    op: Option<&Op>,
    root: u32,
    count: Option<String>,
    custom: Option<&str>,
) -> String {
    let mut text = match what {
        What::Send => "send".to_string(),
        What::Receive => "receive".to_string(),
        _ => operation(what, custom),
    };
    if what == What::Barrier {
        return text;
    }
    match count {
        Some(count) => text.push_str(&format!(" of {count} {dtype}")),
        None if !dtype.is_empty() => text.push_str(&format!(" of {dtype}")),
        None => {}
    }
    match what {
        What::Send => text.push_str(&format!(" to rank {root}")),
        What::Receive => text.push_str(&format!(" from rank {root}")),
        _ if what.has_root() => text.push_str(&format!(", root {root}")),
        _ => {}
    }
    if let Some(op) = op {
        text.push_str(&format!(", {}", op.words()));
    }
    text
}
