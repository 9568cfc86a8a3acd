//! `collc list`: the library's schedules, what each is in one sentence, and its cost.

use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::output;
use coll::library::{self, Entry};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Row {
    operation: &'static str,
    schedule: &'static str,
    about: String,
    cost: String,
}

/// Lists all, or one operation's.
pub(crate) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let operation = match &args.operation {
        None => None,
        Some(name) => Some(coll::canonical_operation(name).ok_or_else(|| {
            Failure::unusable(format!("no operation `{name}`"))
                .help(format!("there are {}", coll::OPERATIONS.join(", ")))
        })?),
    };
    let wanted = library::entries().filter(|entry| operation.is_none_or(|wanted| wanted == entry.collective));
    let rows: Vec<Row> = wanted.map(|entry| row(&entry)).collect();
    match args.format {
        Format::Json => {
            output::print(&(serde_json::to_string_pretty(&rows).expect("rows are plain data") + "\n"))?
        }
        Format::Text => output::print(&table(&rows))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The first sentence and the `Cost:` line of the file's head comment.
fn row(entry: &Entry) -> Row {
    let head: Vec<&str> =
        entry.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let cost = head.iter().position(|line| line.starts_with("Cost:"));
    let about: Vec<&str> = head.iter().copied().take_while(|line| !line.is_empty()).collect();
    let about = about.join(" ");
    let about = about.split_once(". ").map_or(about.as_str(), |(sentence, _)| sentence);
    Row {
        operation: entry.collective,
        schedule: entry.schedule,
        about: about.trim_end_matches('.').to_string(),
        cost: cost.map_or(String::new(), |at| head[at]["Cost:".len()..].trim().to_string()),
    }
}

fn table(rows: &[Row]) -> String {
    let name = |row: &Row| format!("{}.{}", row.operation, row.schedule);
    let name_width = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
    let cost_width = rows.iter().map(|row| row.cost.chars().count()).max().unwrap_or(0);
    let mut text = format!("{:name_width$}  {:cost_width$}  what it is\n", "schedule", "cost");
    for row in rows {
        text += &format!("{:name_width$}  {:cost_width$}  {}\n", name(row), row.cost, row.about);
    }
    text + "\nα: latency of a message, β: time of a byte on the wire, γ: time of a byte reduced, m: bytes, n: ranks\n"
}
