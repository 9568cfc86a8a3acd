//! The operator of a run: built in, declared by the file that is run, or by another that is named with it.

use crate::args::RunArgs;
use crate::cmd::target;
use crate::failure::Failure;
use coll::Source;
use coll::trial::Operator;
use coll_base::RedOp;
use coll_kernel::UserOperator;
use coll_plan::Plan;
use std::path::Path;

/// The operator that is asked for; `declared` are those of what is run. A file that declares one means it to be used.
pub(super) fn operator(args: &RunArgs, declared: &[UserOperator]) -> Result<Operator, Failure> {
    let Some(name) = &args.op else {
        return match declared {
            [only] => user(args, only),
            [] => builtin(args, RedOp::Sum),
            _ => Err(Failure::unusable("the file declares several operators").help("name one with `--op`")),
        };
    };
    if let Some((file, name)) = of_another_file(name) {
        return from_file(args, file, name);
    }
    if let Some(operator) = declared.iter().find(|operator| operator.name == *name) {
        return user(args, operator);
    }
    match name.parse() {
        Ok(op) => builtin(args, op),
        Err(message) => {
            let failure = Failure::unusable(message);
            Err(match declared {
                [] => failure.help("an operator of one's own is named with its file: `--op FILE.coll:NAME`"),
                _ => failure.help(format!("the file declares {}", names(declared))),
            })
        }
    }
}

/// `FILE.coll:NAME`
fn of_another_file(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once(':').filter(|(file, _)| file.ends_with(".coll"))
}

fn from_file(args: &RunArgs, file: &str, name: &str) -> Result<Operator, Failure> {
    let source = Source::read(Path::new(file))?;
    if source.has_errors() {
        target::show(&source, &source.diagnostics);
        return Err(target::broken(&source));
    }
    let declared = source.module.operators();
    match declared.iter().find(|operator| operator.name == name) {
        Some(operator) => user(args, operator),
        None => {
            let failure = Failure::unusable(format!("{file} declares no operator `{name}`"));
            Err(failure.help(match declared {
                [] => "it declares none".into(),
                _ => format!("it declares {}", names(declared)),
            }))
        }
    }
}

fn names(declared: &[UserOperator]) -> String {
    declared.iter().map(|operator| operator.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn user(args: &RunArgs, operator: &UserOperator) -> Result<Operator, Failure> {
    let value = |name: &String| {
        let given = args.operator_values.iter().find(|(known, _)| known == name);
        given.map(|(_, value)| *value).ok_or_else(|| {
            Failure::unusable(format!("operator `{}` needs a value for `{name}`", operator.name))
                .help(format!("give it one with `--set {name}=VALUE`"))
        })
    };
    for (at, (name, _)) in args.operator_values.iter().enumerate() {
        if !operator.params.contains(name) {
            let has = match operator.params.is_empty() {
                true => "it has none".to_string(),
                false => format!("it has {}", operator.params.join(", ")),
            };
            let message = format!("operator `{}` has no parameter `{name}`", operator.name);
            return Err(Failure::unusable(message).help(has));
        }
        if args.operator_values[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Failure::unusable(format!("`--set {name}=…` is given twice")));
        }
    }
    let values = operator.params.iter().map(value).collect::<Result<Vec<f64>, Failure>>()?;
    Ok(Operator::User(operator.clone(), values))
}

fn builtin(args: &RunArgs, op: RedOp) -> Result<Operator, Failure> {
    let params = op.params();
    if let Some((name, _)) = args.operator_values.iter().find(|(name, _)| !params.contains(&name.as_str())) {
        return Err(Failure::unusable(format!("operator `{op}` has no parameter `{name}`")));
    }
    match (params, &args.operator_values[..]) {
        ([], _) => Ok(Operator::Builtin(op)),
        (_, [(_, factor)]) => Ok(Operator::PremulSum(*factor)),
        (_, [_, (name, _), ..]) => Err(Failure::unusable(format!("`--set {name}=…` is given twice"))),
        ([name, ..], []) => Err(Failure::unusable(format!("operator `{op}` needs a value for `{name}`"))
            .help(format!("give it one with `--set {name}=VALUE`"))),
    }
}

/// Where nothing is reduced, an operator that is asked for would be one that is ignored.
pub(super) fn no_operator(args: &RunArgs, plan: &Plan) -> Result<Operator, Failure> {
    let asked = args.op.as_ref().map(|op| format!("--op {op}"));
    let set = args.operator_values.first().map(|(name, value)| format!("--set {name}={value}"));
    let accumulate = args.passes.accumulate.map(|dtype| format!("--accumulate {dtype}"));
    match asked.or(set).or(accumulate) {
        None => Ok(Operator::Builtin(RedOp::Sum)),
        Some(asked) => {
            let message = format!("`{asked}` is for collectives that reduce, and {} does not", plan.name);
            Err(Failure::unusable(message).help("leave it out: elements arrive as they were sent"))
        }
    }
}

/// An operator that does not commute needs a plan that keeps rank order.
pub(super) fn refuse_order(plan: &Plan, operator: &Operator) -> Result<(), Failure> {
    if operator.is_commutative() || !plan.reduces || plan.claims.ordered {
        return Ok(());
    }
    Err(Failure::unusable(format!(
        "operator `{}` does not commute, and {} does not keep the operands in rank order",
        operator.name(),
        plan.name
    ))
    .help(
        "take a schedule that does: `collc check` says `ordered operators: yes`; a plan says `claim ordered`",
    ))
}
