//! Every schedule of the library instantiates, for every number of ranks that it does not refuse and every root.

mod support;

use coll_sema::{Instance, Refusal};
use support::{load_library, render};

#[test]
fn every_schedule_of_the_library_instantiates() {
    let mut faults = Vec::new();
    for (collective, schedule) in support::names() {
        let (sources, module, diagnostics) = load_library(&collective, &schedule);
        if !diagnostics.is_empty() {
            faults.push(format!("{collective}.{schedule}: {}", render(&sources, &diagnostics)));
            continue;
        }
        let rooted = module.schedules()[0].rooted;
        for ranks in 1..=17 {
            for root in 0..if rooted { ranks } else { 1 } {
                match module.instantiate(0, &Instance { ranks, root, params: Vec::new() }) {
                    Ok(made) => assert_eq!(coll_ir::verify(&made.program), Ok(())),
                    Err(Refusal::DoesNotApply { .. }) => {}
                    Err(Refusal::Errors(errors)) => {
                        faults.push(format!(
                            "{collective}.{schedule} n={ranks} root={root}: {}",
                            render(&sources, &errors)
                        ));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
