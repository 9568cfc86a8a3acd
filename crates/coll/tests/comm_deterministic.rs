//! Deterministic calls: bits depend on rank numbers alone. Known faults B026 and B027.

#[path = "comm/world.rs"]
mod world;

use coll::{CommError, Communicator, RedOp, Via};
use half::bf16;
use world::world_by;

/// Values of all magnitudes, so that every other order of additions shows.
fn values(rank: u32, len: usize, salt: u64) -> Vec<f32> {
    let mut state = (u64::from(rank) << 32 | salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..len).map(|_| (next() as f32 - 1e9) * 2f32.powi((next() % 40) as i32 - 20)).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Every reduction of two inputs apart, and of both joined.
fn apart_and_joined(comm: &mut Communicator) -> Result<Vec<u32>, CommError> {
    let (rank, n) = (comm.rank(), comm.world() as usize);
    let (a, b) = (values(rank, 4097, 1), values(rank, 9001, 2));
    let joined: Vec<f32> = a.iter().chain(&b).copied().collect();
    let sum = |comm: &mut Communicator, input: &[f32]| {
        let mut output = vec![0f32; input.len()];
        comm.all_reduce(input, &mut output, RedOp::Sum)?;
        Ok::<_, CommError>(bits(&output))
    };
    let [sum_a, sum_b, sum_joined] = [sum(comm, &a)?, sum(comm, &b)?, sum(comm, &joined)?];
    assert_eq!([sum_a, sum_b].concat(), sum_joined, "all-reduce on rank {rank} of {n}");
    // The one block of an all-reduce of one element, and of a million.
    assert_eq!(sum(comm, &a[..1])?[0], sum_joined[0]);
    let long: Vec<f32> = a.iter().cycle().take(1 << 18).copied().collect();
    assert_eq!(sum(comm, &long)?[..4097], sum_joined[..4097]);
    let scan = |comm: &mut Communicator, input: &[f32]| {
        let mut output = vec![0f32; input.len()];
        comm.scan(input, &mut output, RedOp::Sum)?;
        Ok::<_, CommError>(bits(&output))
    };
    let [scan_a, scan_b, scan_joined] = [scan(comm, &a)?, scan(comm, &b)?, scan(comm, &joined)?];
    assert_eq!([scan_a, scan_b].concat(), scan_joined, "scan on rank {rank} of {n}");
    let reduce = |comm: &mut Communicator, input: &[f32], root: u32| {
        let mut output = vec![0f32; input.len()];
        comm.reduce(input, Some(&mut output), RedOp::Sum, root)?;
        Ok::<_, CommError>(bits(&output))
    };
    for root in 0..n as u32 {
        let apart = [reduce(comm, &a, root)?, reduce(comm, &b, root)?].concat();
        assert_eq!(apart, reduce(comm, &joined, root)?, "reduce to {root} on rank {rank} of {n}");
    }
    // Blocks of any lengths get what equal ones do: the same elements, cut otherwise.
    let len = 120 * n;
    let counts: Vec<usize> = (0..n).map(|q| if q == 0 { len - (n - 1) } else { 1 }).collect();
    let mut even = vec![0f32; len / n];
    comm.reduce_scatter(&joined[..len], &mut even, RedOp::Sum)?;
    let mut uneven = vec![0f32; counts[rank as usize]];
    comm.reduce_scatter_v(&joined[..len], &mut uneven, RedOp::Sum, &counts)?;
    if rank == 0 {
        assert_eq!(bits(&uneven[..len / n]), bits(&even), "reduce-scatter of {n} ranks");
    }
    let narrow: Vec<bf16> = a.iter().map(|&value| bf16::from_f32(value)).collect();
    let mut of_narrow = vec![bf16::ZERO; narrow.len()];
    comm.all_reduce(&narrow, &mut of_narrow, RedOp::Sum)?;
    let mut of_part = vec![bf16::ZERO; 100];
    comm.all_reduce(&narrow[..100], &mut of_part, RedOp::Sum)?;
    assert_eq!(of_part[..], of_narrow[..100], "bf16 on rank {rank} of {n}");
    Ok(sum_joined.into_iter().chain(scan_joined).chain(bits(&even)).collect())
}

#[test]
fn b027_joined_and_apart_give_the_same_bits_on_every_transport() {
    for n in [2, 3, 5, 8] {
        let by = |via| {
            let each = |comm: &mut Communicator| {
                comm.set_deterministic(true);
                apart_and_joined(comm).unwrap_or_else(|error| panic!("{error}"))
            };
            world_by(via, n, each)
        };
        assert!(by(Via::Fastest) == by(Via::Tcp), "{n} ranks");
    }
}

#[test]
fn b026_orders_of_ranks_may_differ_and_repetitions_do_not() {
    let orders = [[0, 1, 2, 3], [0, 2, 1, 3], [1, 0, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0], [3, 2, 1, 0]];
    for order in orders {
        let each = move |comm: &mut Communicator| {
            comm.set_deterministic(true);
            let mine = [1e8f32, 1.0, -1e8, 1.0][order[comm.rank() as usize]];
            let sum = |comm: &mut Communicator| {
                let mut sum = [0f32];
                comm.all_reduce(&[mine], &mut sum, RedOp::Sum).unwrap_or_else(|error| panic!("{error}"));
                sum[0]
            };
            let first = sum(comm);
            (0..99).for_each(|_| assert_eq!(sum(comm).to_bits(), first.to_bits()));
            first
        };
        let by_transport = [Via::Fastest, Via::Tcp].map(|via| world_by(via, 4, each));
        let first = by_transport[0][0];
        assert!([0.0, 1.0, 2.0].contains(&first), "{order:?}: {first}");
        assert!(by_transport.iter().flatten().all(|sum| sum.to_bits() == first.to_bits()), "{order:?}");
    }
}

#[test]
fn what_is_switched_on_is_handed_on_and_can_be_switched_off() {
    let comms = Communicator::builder().deterministic(true).local(2).unwrap();
    let threads = comms.into_iter().map(|mut comm| {
        std::thread::spawn(move || {
            let mut other = comm.duplicate()?;
            assert!(comm.is_deterministic() && other.is_deterministic());
            other.set_deterministic(false);
            let held = comm.prepare_all_reduce::<f32>(1 << 16, RedOp::Sum)?;
            let (mine, mut sum) = (vec![1f32; 1 << 16], vec![0f32; 1 << 16]);
            held.run(&mut comm, &mine, &mut sum)?;
            comm.all_reduce(&mine[..2], &mut sum[..2], RedOp::Sum)?;
            other.all_reduce(&mine, &mut sum, RedOp::Sum)?;
            other.all_reduce(&mine[..2], &mut sum[..2], RedOp::Sum)?;
            let schedules = |comm: &mut Communicator| -> Vec<String> {
                comm.flight_record().into_iter().map(|record| record.schedule).collect()
            };
            let [fixed, free] = [schedules(&mut comm), schedules(&mut other)];
            assert_eq!(fixed[0], fixed[1], "one schedule for all sizes");
            Ok::<_, CommError>(free)
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        let free = thread.join().unwrap().unwrap();
        assert_eq!(free.len(), 2);
    }
}

/// B071.
#[test]
fn ranks_that_disagree_on_it_do_not_meet() {
    let port = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let ranks = [0, 1].map(|rank| {
        std::thread::spawn(move || {
            Communicator::builder()
                .rank(rank, 2)
                .rendezvous(format!("127.0.0.1:{port}"))
                .time_limit(world::LIMIT)
                .deterministic(rank == 1)
                .build()
        })
    });
    for rank in ranks {
        let error = rank.join().unwrap().expect_err("they disagree").to_string();
        assert!(error.contains("deterministic"), "{error}");
    }
}
