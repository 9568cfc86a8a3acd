//! A plan that is meant for a topology: the order of its ranks is part of what it was compiled from, and changes nothing of
//! what was proved.

use coll_plan::{Placement, Plan, Proof, Reference};
use sha2::{Digest, Sha256};

/// The plan with a placement. Its origin is a new one, so that ranks which were placed otherwise tell each other so when they
/// join; what is said of its proof names what the plan now is.
pub fn placed(mut plan: Plan, placement: Placement) -> Plan {
    if let Some(origin) = &plan.origin {
        let mut hasher = Sha256::new();
        hasher.update(format!("collc placed\n{origin}\n{placement}"));
        plan.origin = Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
    }
    plan.placement = Some(placement);
    plan.proof = match plan.proof.take() {
        Some(Proof::Whole(_)) if plan.is_whole() => Some(Proof::Whole(coll_plan::hash(&plan))),
        Some(Proof::Reference(Reference { counts, .. })) => {
            plan.origin.as_deref().map(|origin| Proof::Reference(Reference::new(origin, counts)))
        }
        other => other,
    };
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, Options, Outcome, Source, prove, read_plan};

    #[test]
    fn a_placed_plan_is_proved_as_it_was_and_has_an_origin_of_its_own() {
        let source = Source::builtin("allreduce", "ring").expect("the library has a ring");
        let instance = Instance { ranks: 4, root: 0, params: Vec::new() };
        let Outcome::Right(proved) = prove(&source, 0, &instance, &Options::default()) else {
            panic!("the ring keeps its contract");
        };
        let on = |order: &[u32]| {
            placed(proved.plan.clone(), Placement { topology: "box".into(), order: order.to_vec() })
        };
        let (here, there) = (on(&[0, 2, 1, 3]), on(&[0, 1, 2, 3]));
        let origins = [&proved.plan, &here, &there].map(|plan| plan.origin.clone().expect("it was compiled"));
        assert!(origins[0] != origins[1] && origins[1] != origins[2] && origins[0] != origins[2]);
        assert_eq!(on(&[0, 2, 1, 3]), here);
        let read = read_plan(&coll_plan::to_bytes(&here)).expect("it is proved anew");
        assert_eq!((read.plan, read.found), (here.clone(), proved.plan.claims));
        // Who moves a rank by hand changes the plan.
        let mut moved = here;
        moved.placement = there.placement;
        assert!(read_plan(&coll_plan::to_bytes(&moved)).is_err());
    }
}
