//! Every schedule with a closed form takes what the form says: α + m β and so on, as `collc list` has them. On a network
//! with a link for each pair, what a rank sends to several is sent at once; through one port it is not.

use crate::library::{all, compile};
use crate::network::{Constants, full, ports};
use coll_sim::{Options, predict};

/// What a form is made of, in microseconds, for one message of a schedule's.
struct Terms {
    n: f64,
    /// A message: twice what each end pays, and the latency.
    a: f64,
    /// All of the buffer on a link, and reduced.
    mb: f64,
    mg: f64,
    /// Base-2 logarithm, rounded up, and the largest power of two that is not above n.
    log: f64,
    p: f64,
}

/// A schedule, the rank counts that its form holds for, and the form.
struct Form {
    name: &'static str,
    params: &'static [(&'static str, i64)],
    ranks: &'static [u32],
    form: fn(&Terms) -> f64,
}

const fn form(name: &'static str, ranks: &'static [u32], form: fn(&Terms) -> f64) -> Form {
    Form { name, params: &[], ranks, form }
}

const ANY: &[u32] = &[2, 3, 4, 6, 7, 8, 13, 16];
/// Between two ranks the chunks of a pipeline are merged into one message; down a tree of two levels, too.
const PIPELINES: &[u32] = &[3, 4, 6, 7, 8, 13, 16];
const POWERS: &[u32] = &[2, 4, 8, 16];

/// Forms in which each rank sends one message at a time, so that what its ends pay is on the path.
const ONE_BY_ONE: &[Form] = &[
    form("allgather.ring", ANY, |t| (t.n - 1.0) * (t.a + t.mb / t.n)),
    // On other counts the last round sends nothing that the one before it brought, and goes beside it.
    form("allgather.bruck", &[2, 4, 7, 8, 13, 16], |t| t.log * t.a + (t.n - 1.0) / t.n * t.mb),
    form("allgather.doubling", POWERS, |t| t.log * t.a + (t.n - 1.0) / t.n * t.mb),
    form("allgather.neighbor", &[2, 4, 6, 8, 16], |t| t.n / 2.0 * t.a + (t.n - 1.0) / t.n * t.mb),
    form("allreduce.ring", ANY, |t| 2.0 * (t.n - 1.0) * t.a + (t.n - 1.0) / t.n * (2.0 * t.mb + t.mg)),
    form("allreduce.butterfly", POWERS, |t| t.log * (t.a + t.mb + t.mg)),
    form("allreduce.recursive_doubling", POWERS, |t| t.log * (t.a + t.mb + t.mg)),
    form("allreduce.rabenseifner", POWERS, |t| 2.0 * t.log * t.a + (t.n - 1.0) / t.n * (2.0 * t.mb + t.mg)),
    form("reduce_scatter.halving", POWERS, |t| t.log * t.a + (t.n - 1.0) / t.n * (t.mb + t.mg)),
    form("reduce_scatter.ring", ANY, |t| (t.n - 1.0) * (t.a + (t.mb + t.mg) / t.n)),
    form("alltoall.bruck", POWERS, |t| t.log * (t.a + t.mb / 2.0)),
    form("barrier.dissemination", ANY, |t| t.log * t.a),
    Form {
        name: "allreduce.two_level",
        params: &[("local", 4)],
        ranks: &[8, 12, 16],
        form: |t| {
            let (l, nodes) = (4.0, t.n / 4.0);
            let within = (l - 1.0) * (t.a + (t.mb + t.mg) / l) + (l - 1.0) * (t.a + t.mb / l);
            within + 2.0 * (nodes - 1.0) * (t.a + t.mb / t.n) + (nodes - 1.0) * t.mg / t.n
        },
    },
];

/// Forms in which a rank sends to several at once, or has paid for a message before it can go.
const AT_ONCE: &[Form] = &[
    form("allreduce.recursive_doubling", ANY, |t| {
        let folded = if t.p < t.n { 2.0 * t.a + 2.0 * t.mb + t.mg } else { 0.0 };
        t.p.log2() * (t.a + t.mb + t.mg) + folded
    }),
    form("allreduce.rabenseifner", &[2, 3, 4, 8, 16], |t| {
        let folded = if t.p < t.n { 2.0 * t.a + 2.0 * t.mb + t.mg } else { 0.0 };
        2.0 * t.p.log2() * t.a + (t.p - 1.0) / t.p * (2.0 * t.mb + t.mg) + folded
    }),
    form("allgather.direct", ANY, |t| t.a + t.mb / t.n),
    form("allreduce.one_shot", ANY, |t| t.a + t.mb + (t.n - 1.0) * t.mg),
    form("allreduce.two_shot", ANY, |t| (t.n - 1.0) * (t.a + (t.mb + t.mg) / t.n) + t.a + t.mb / t.n),
    form("allreduce.reduce_broadcast", POWERS, |t| t.log * (2.0 * (t.a + t.mb) + t.mg)),
    // Each message is reduced before the next one's receive is there, and so before that sets out.
    form("reduce_scatter.direct", ANY, |t| (t.n - 1.0) * (t.a + (t.mb + t.mg) / t.n)),
    form("reduce_scatter.pairwise", ANY, |t| (t.n - 1.0) * (t.a + (t.mb + t.mg) / t.n)),
    form("broadcast.linear", ANY, |t| t.a + t.mb),
    form("broadcast.binomial", ANY, |t| digits(t.n as u32, 2) * (t.a + t.mb)),
    Form {
        name: "broadcast.knomial",
        params: &[("k", 3)],
        ranks: ANY,
        form: |t| digits(t.n as u32, 3) * (t.a + t.mb),
    },
    Form {
        name: "broadcast.chain",
        params: &[("c", 8)],
        ranks: PIPELINES,
        form: |t| (t.n - 2.0 + 8.0) * (t.a + t.mb / 8.0),
    },
    Form {
        name: "broadcast.binary",
        params: &[("c", 8)],
        ranks: &[8, 13, 16],
        form: |t| (t.n.log2().floor() - 1.0 + 8.0) * (t.a + t.mb / 8.0),
    },
    form("broadcast.scatter_allgather", POWERS, |t| {
        (t.log + t.n - 1.0) * t.a + 2.0 * (t.n - 1.0) / t.n * t.mb
    }),
    form("reduce.linear", ANY, |t| (t.n - 1.0) * (t.a + t.mb + t.mg)),
    form("reduce.binomial", POWERS, |t| t.log * (t.a + t.mb + t.mg)),
    Form {
        name: "reduce.chain",
        params: &[("c", 8)],
        ranks: PIPELINES,
        form: |t| (t.n - 2.0 + 8.0) * (t.a + (t.mb + t.mg) / 8.0),
    },
    form("reduce.rabenseifner", POWERS, |t| 2.0 * t.log * t.a + (t.n - 1.0) / t.n * (2.0 * t.mb + t.mg)),
    form("gather.linear", ANY, |t| t.a + t.mb / t.n),
    form("gather.binomial", POWERS, |t| t.log * t.a + (t.n - 1.0) / t.n * t.mb),
    form("scatter.linear", ANY, |t| t.a + t.mb / t.n),
    form("scatter.binomial", POWERS, |t| t.log * t.a + (t.n - 1.0) / t.n * t.mb),
    form("alltoall.linear", ANY, |t| t.a + t.mb / t.n),
    form("alltoall.pairwise", ANY, |t| t.a + t.mb / t.n),
    Form {
        name: "alltoall.two_step",
        params: &[("local", 4)],
        ranks: &[8, 12, 16],
        form: |t| 2.0 * t.a + (t.n / 4.0 + 4.0) / t.n * t.mb,
    },
    form("barrier.linear", ANY, |t| 2.0 * t.a),
    form("barrier.tree", POWERS, |t| 2.0 * t.log * t.a),
    form("scan.doubling", ANY, |t| t.log * (t.a + t.mb + t.mg)),
    Form {
        name: "scan.chain",
        params: &[("c", 8)],
        ranks: PIPELINES,
        form: |t| (t.n - 2.0 + 8.0) * (t.a + (t.mb + t.mg) / 8.0),
    },
    // All but the first scan what their left neighbours gave them.
    form("exscan.doubling", ANY, |t| t.a + t.mb + (t.n - 1.0).log2().ceil() * (t.a + t.mb + t.mg)),
    Form {
        name: "exscan.chain",
        params: &[("c", 8)],
        ranks: &[4, 6, 7, 8, 13, 16],
        form: |t| t.a + t.mb + (t.n - 3.0 + 8.0) * (t.a + (t.mb + t.mg) / 8.0),
    },
];

/// Forms of two trees at once, where reducing costs nothing: half of the data goes down each, chunk after chunk. Upwards a rank takes
/// the first chunks of its two children one after the other, so each level but the last costs one message more.
const TWO_TREES: &[Form] = &[
    Form {
        name: "broadcast.double_tree",
        params: &[("c", 8)],
        ranks: &[7, 8, 13, 16],
        form: |t| (deepest(t.n as u32) - 1.0 + 8.0) * (t.a + t.mb / 16.0),
    },
    Form {
        name: "reduce.double_tree",
        params: &[("c", 8)],
        ranks: &[7, 8, 13, 16],
        form: |t| (2.0 * deepest(t.n as u32) - 2.0 + 8.0) * (t.a + t.mb / 16.0),
    },
    // More chunks than this on so few ranks, and what comes down waits for what goes up.
    Form {
        name: "allreduce.double_tree",
        params: &[("c", 4)],
        ranks: &[7, 8, 13, 16],
        form: |t| (3.0 * deepest(t.n as u32) - 2.0 + 4.0) * (t.a + t.mb / 8.0),
    },
];

/// Forms in which messages do not wait for their receives: one slot of each connection is enough.
const WITH_A_SLOT: &[Form] = &[
    form("allreduce.two_shot", ANY, |t| 2.0 * (t.a + t.mb / t.n) + (t.n - 1.0) / t.n * t.mg),
    form("reduce_scatter.direct", ANY, |t| t.a + t.mb / t.n + (t.n - 1.0) / t.n * t.mg),
    form("reduce_scatter.pairwise", ANY, |t| t.a + t.mb / t.n + (t.n - 1.0) / t.n * t.mg),
    form("reduce.linear", ANY, |t| t.a + t.mb + (t.n - 1.0) * t.mg),
];

/// Forms through one port, with a slot, where bytes to several share it.
const ONE_PORT: &[Form] = &[
    form("allgather.ring", ANY, |t| (t.n - 1.0) * (t.a + t.mb / t.n)),
    form("allgather.direct", ANY, |t| t.a + (t.n - 1.0) / t.n * t.mb),
    form("allreduce.one_shot", ANY, |t| t.a + (t.n - 1.0) * (t.mb + t.mg)),
    form("allreduce.two_shot", ANY, |t| 2.0 * t.a + (t.n - 1.0) / t.n * (2.0 * t.mb + t.mg)),
    form("reduce_scatter.direct", ANY, |t| t.a + (t.n - 1.0) / t.n * (t.mb + t.mg)),
    form("broadcast.linear", ANY, |t| t.a + (t.n - 1.0) * t.mb),
    form("gather.linear", ANY, |t| t.a + (t.n - 1.0) / t.n * t.mb),
    form("scatter.linear", ANY, |t| t.a + (t.n - 1.0) / t.n * t.mb),
    form("alltoall.linear", ANY, |t| t.a + (t.n - 1.0) / t.n * t.mb),
    form("alltoall.pairwise", ANY, |t| t.a + (t.n - 1.0) / t.n * t.mb),
];

/// The most digits but 0 to a base that a number below n has: how many sends it is from the root of a tree.
fn digits(n: u32, base: u32) -> f64 {
    let count = |mut v: u32| {
        let mut found = 0;
        while v > 0 {
            found += u32::from(!v.is_multiple_of(base));
            v /= base;
        }
        found
    };
    f64::from((0..n).map(count).max().unwrap_or(0))
}

/// How many links are between the root and the rank that is furthest from it, in either of two trees: over the ranks 1..n, in which
/// the lowest set bit of a number is its height.
fn deepest(n: u32) -> f64 {
    let parent = |p: u32| {
        let low = p & p.wrapping_neg();
        let up = (p ^ low) | low << 1;
        if up < n { up } else { p ^ low }
    };
    let depth = |p: u32| std::iter::successors(Some(p), |&p| Some(parent(p))).take_while(|&p| p != 0).count();
    (1..n).map(depth).max().unwrap_or(0) as f64
}

fn check(forms: &[Form], constants: Constants, one_port: bool, slots: u32) {
    for Form { name, params, ranks, form } in forms {
        for &n in *ranks {
            let plan = compile(name, n, params).unwrap_or_else(|| panic!("{name} serves {n} ranks"));
            for kib in [1u64, 160] {
                let bytes = u64::from(n) * 16 * kib * 64;
                let network = if one_port { ports(n, constants) } else { full(n, constants) };
                let options = Options { bytes, slots: Some(slots), ..Options::default() };
                let found =
                    predict(&[&plan], &network, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
                let m = bytes as f64;
                let terms = Terms {
                    n: f64::from(n),
                    a: 2.0 * constants.message_us + constants.latency_us,
                    mb: m / constants.bytes_per_us,
                    mg: m * constants.reduce_ns / 1000.0,
                    log: f64::from(n.next_power_of_two().trailing_zeros()),
                    p: f64::from(1 << n.ilog2()),
                };
                let expected = form(&terms);
                let near = (found.time_us - expected).abs() <= 1e-9 * expected;
                assert!(
                    near,
                    "{name} on {n} ranks, {bytes} bytes: {} µs, by its form {expected}",
                    found.time_us
                );
                let bound = found.bound.us;
                assert!(
                    bound <= found.time_us * (1.0 + 1e-9),
                    "{name} on {n}: bound {bound}, time {expected}"
                );
            }
        }
    }
}

#[test]
fn schedules_that_send_one_by_one_take_what_their_forms_say() {
    let constants = Constants { message_us: 0.75, reduce_ns: 0.25, latency_us: 2.0, ..Constants::PLAIN };
    check(ONE_BY_ONE, constants, false, 0);
}

#[test]
fn schedules_that_send_to_many_at_once_take_what_their_forms_say() {
    check(AT_ONCE, Constants { reduce_ns: 0.25, ..Constants::PLAIN }, false, 0);
    check(WITH_A_SLOT, Constants { reduce_ns: 0.25, ..Constants::PLAIN }, false, 1);
}

#[test]
fn two_trees_at_once_take_what_their_forms_say() {
    check(TWO_TREES, Constants::PLAIN, false, 0);
}

/// A schedule that comes new has a form here, or a reason why it has none.
#[test]
fn every_schedule_of_the_library_has_a_form() {
    let tables = [ONE_BY_ONE, AT_ONCE, TWO_TREES, WITH_A_SLOT, ONE_PORT];
    let with: Vec<&str> = tables.into_iter().flatten().map(|form| form.name).collect();
    let without: Vec<String> = all().into_iter().filter(|name| !with.contains(&name.as_str())).collect();
    assert!(without.is_empty(), "no closed form is tested of {without:?}");
}

#[test]
fn through_one_port_bytes_share_it() {
    check(ONE_PORT, Constants { reduce_ns: 0.25, ..Constants::PLAIN }, true, 1);
}

/// B114: the published sum for 1 MiB on 8 ranks, and ten times the bandwidth.
#[test]
fn b114_a_ring_of_eight_follows_its_links() {
    let plan = compile("allreduce.ring", 8, &[]).expect("it serves 8 ranks");
    let time = |bytes_per_us: f64, latency_us: f64| {
        let network = full(8, Constants { bytes_per_us, latency_us, ..Constants::PLAIN });
        predict(&[&plan], &network, &Options { bytes: 1 << 20, ..Options::default() })
            .expect("it runs")
            .time_us
    };
    let bytes_us = 14.0 / 8.0 * f64::from(1 << 20) / 1000.0;
    assert!((time(1000.0, 5.0) - (bytes_us + 14.0 * 5.0)).abs() < 1e-6);
    let ratio = time(1000.0, 0.0) / time(10_000.0, 0.0);
    assert!((ratio - 10.0).abs() < 1e-9, "{ratio}");
}
